package claims

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// mostWords is how many words the glossary may have: more of them nobody keeps in mind.
const mostWords = 40

// notProduct are folders of modules for which the glossary does not hold.
var notProduct = []string{"examples", "bench", "deploy", "field/internal/gen"}

// TestWords compares the names that the product declares, the documents and the help with the glossary of
// CONTRIBUTING.md. A word that belongs to some folders stands in no name of others, and a retired one in none, nor in a
// document or help text.
func TestWords(t *testing.T) {
	root := repository(t)
	at, retired := glossary(t, root)
	names := 0
	declared(t, root, func(dir, name, where string) {
		names++
		for _, word := range wordsIn(name) {
			folders, owned := at[word]
			say, is := retired[word]
			if is || owned && !slices.ContainsFunc(folders, func(f string) bool { return within(dir, f) }) {
				t.Errorf("%s: %s: the glossary of CONTRIBUTING.md has %q for %s", where, name, word, cmp.Or(say, strings.Join(folders, ", ")+" alone"))
			}
		}
	})
	if names < 10_000 {
		t.Errorf("%d names: were they found?", names)
	}

	texts := map[string]string{}
	for _, document := range documents(t, root) {
		if document != "CHANGELOG.md" { // which tells history
			texts[document] = prose(read(t, filepath.Join(root, document)))
		}
	}
	help, err := filepath.Glob(filepath.Join(root, "internal", "cli", "help", "*.txt"))
	if err != nil || len(help) < 20 {
		t.Fatalf("%d help texts, %v", len(help), err)
	}
	for _, path := range help {
		texts[filepath.Base(path)] = read(t, path)
	}
	for name, text := range texts {
		for word, say := range retired {
			if m := regexp.MustCompile(`(?i)(?:^|[^.\w])` + word + `s?\b.{0,40}`).FindString(text); m != "" {
				t.Errorf("%s: %q: say %s in place of %s", name, m, say, word)
			}
		}
	}
}

// glossary reads the tables of CONTRIBUTING.md: by word the folders whose names may have it, of words that belong to
// some; and by retired word what to say.
func glossary(t *testing.T, root string) (at map[string][]string, retired map[string]string) {
	t.Helper()
	_, section, ok := strings.Cut(read(t, filepath.Join(root, "CONTRIBUTING.md")), "\n## Words\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no glossary")
	}
	at, retired = map[string][]string{}, map[string]string{}
	words := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], "---") || strings.Contains(line, "| word |") || strings.Contains(line, "| retired |") {
			continue
		}
		word := strings.TrimSpace(cells[1])
		if len(cells) == 4 {
			retired[word] = strings.TrimSpace(cells[2])
			continue
		}
		words++
		for _, m := range code.FindAllStringSubmatch(cells[3], -1) {
			at[word] = append(at[word], m[1])
		}
	}
	if words < 20 || words > mostWords || len(at) < 5 || len(retired) < 3 {
		t.Fatalf("the glossary has %d words, of which %d belong to some folders, and %d retired ones", words, len(at), len(retired))
	}
	return at, retired
}

// declared calls f with each name that the product's sources declare, the folder, and where that is.
func declared(t *testing.T, root string, f func(dir, name, where string)) {
	t.Helper()
	set := token.NewFileSet()
	files(t, root, func(path string) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata/") ||
			slices.ContainsFunc(notProduct, func(p string) bool { return within(dir, p) }) {
			return
		}
		source, err := parser.ParseFile(set, filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		declare := func(of ...*ast.Ident) {
			for _, x := range of {
				f(dir, x.Name, strings.TrimPrefix(set.Position(x.Pos()).String(), root+"/"))
			}
		}
		define := func(of ...ast.Expr) {
			for _, x := range of {
				if is, ok := x.(*ast.Ident); ok {
					declare(is)
				}
			}
		}
		declare(source.Name)
		ast.Inspect(source, func(x ast.Node) bool {
			switch x := x.(type) {
			case *ast.FuncDecl:
				declare(x.Name)
			case *ast.TypeSpec:
				declare(x.Name)
			case *ast.ValueSpec:
				declare(x.Names...)
			case *ast.Field:
				declare(x.Names...)
			case *ast.AssignStmt:
				if x.Tok == token.DEFINE {
					define(x.Lhs...)
				}
			case *ast.RangeStmt:
				if x.Tok == token.DEFINE {
					define(x.Key, x.Value)
				}
			}
			return true
		})
	})
}

// wordsIn splits a name where its letters become capital, and makes words singular.
func wordsIn(name string) (list []string) {
	word := []rune{}
	end := func() {
		if len(word) > 0 {
			list = append(list, strings.TrimSuffix(strings.ToLower(string(word)), "s"))
		}
		word = word[:0]
	}
	letters := []rune(name)
	for i, r := range letters {
		switch {
		case r == '_':
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end()
		}
		word = append(word, r)
	}
	end()
	return list
}

// within reports whether a folder is another one or lies below it. The root has no folder below it.
func within(dir, of string) bool { return dir == of || of != "." && strings.HasPrefix(dir, of+"/") }

// prose returns a document without code, without the addresses of links, and without the glossary itself.
func prose(text string) string {
	before, rest, ok := strings.Cut(text, "\n## Words\n")
	if ok {
		_, after, _ := strings.Cut(rest, "\n## ")
		text = before + "\n" + after
	}
	return address.ReplaceAllString(code.ReplaceAllString(unfenced(text), ""), "]")
}
