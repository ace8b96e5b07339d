package claims

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// files calls visit with the path, from the root of the repository, of every file of it.
func files(t *testing.T, root string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		short, err := filepath.Rel(root, path)
		if err == nil {
			visit(filepath.ToSlash(short))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// documents returns the Markdown files of the repository.
func documents(t *testing.T, root string) []string {
	t.Helper()
	var list []string
	files(t, root, func(path string) {
		dir := filepath.Dir(path)
		if strings.HasSuffix(path, ".md") && (dir == "." || dir == "docs") {
			list = append(list, path)
		}
	})
	if len(list) < 5 {
		t.Fatalf("the documents are %v", list)
	}
	return list
}

// TestNames checks that every test and fuzz test exists that a document or a comment names.
func TestNames(t *testing.T) {
	root := repository(t)
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	name, comment := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`), regexp.MustCompile(`//.*`)
	tests := map[string]bool{}
	type mention struct{ where, name string }
	var mentions []mention
	files(t, root, func(path string) {
		text := ""
		switch {
		case strings.HasSuffix(path, "_test.go"):
			for _, m := range function.FindAllStringSubmatch(read(t, filepath.Join(root, path)), -1) {
				tests[m[1]] = true
			}
		case strings.HasSuffix(path, ".go"):
			text = strings.Join(comment.FindAllString(read(t, filepath.Join(root, path)), -1), "\n")
		case strings.HasSuffix(path, ".md"):
			text = read(t, filepath.Join(root, path))
		}
		for _, n := range name.FindAllString(text, -1) {
			mentions = append(mentions, mention{path, n})
		}
	})
	for _, m := range mentions {
		if !tests[m.name] {
			t.Errorf("%s names %s: there is no such test", m.where, m.name)
		}
	}
	if len(mentions) < 50 {
		t.Errorf("%d tests are named: were they found?", len(mentions))
	}
}

// TestAttacks checks that each attack in the table of docs/security.md has tests. TestNames checks that there are these.
func TestAttacks(t *testing.T) {
	_, table, _ := strings.Cut(read(t, filepath.Join(repository(t), "docs", "security.md")), "\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) != 5 || !strings.Contains(cells[3], "`Test") {
			t.Errorf("docs/security.md: no test shows what happens: %s", line)
		}
	}
	if attacks := strings.Count(table, "\n"); attacks < 20 {
		t.Errorf("docs/security.md has %d attacks: was its table found?", attacks)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("`([^`]+)`")
	path    = regexp.MustCompile(`^[a-z.][\w.-]*(/[\w.-]+)+/?$`)
	folder  = regexp.MustCompile(`^[a-z]+$`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// elsewhere are paths in documents that are none of the repository: what volley or make writes.
// What begins with .volley/ is in a protected directory.
var elsewhere = []string{"lab/web/site", "dist/release"}

// TestLinks checks that links of the documents lead somewhere, and that there are the files
// and folders that they name.
func TestLinks(t *testing.T) {
	root := repository(t)
	for _, document := range documents(t, root) {
		text := read(t, filepath.Join(root, document))
		there := func(path string, from ...string) bool {
			return slices.ContainsFunc(from, func(dir string) bool {
				_, err := os.Stat(filepath.Join(root, dir, path))
				return err == nil
			})
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			if to != "" && !there(to, filepath.Dir(document)) {
				t.Errorf("%s: the link %s leads nowhere", document, m[1])
			} else if target := text; anchor != "" {
				if to != "" {
					target = read(t, filepath.Join(root, filepath.Dir(document), to))
				}
				if !slices.Contains(anchors(target), anchor) {
					t.Errorf("%s: the link %s leads to no heading", document, m[1])
				}
			}
		}
		for line := range strings.Lines(unfenced(text)) {
			cells := strings.Split(line, "|")
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				switch name := m[1]; {
				case path.MatchString(name) && !slices.Contains(elsewhere, name) && !strings.HasPrefix(name, ".volley/") && !there(name, ".", filepath.Dir(document)):
					t.Errorf("%s: there is no %s", document, name)
				case document == "CONTRIBUTING.md" && len(cells) == 4 && strings.Contains(cells[1], m[0]) && folder.MatchString(name) &&
					name != "volley" && !there(name, "."):
					t.Errorf("%s: there is no folder %s", document, name)
				}
			}
		}
	}
}

// anchors returns the anchors of the headings of a document.
func anchors(text string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(unfenced(text), -1) {
		anchor := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(anchor, " ", "-"))
	}
	return list
}

// unfenced returns a document without its fenced blocks.
func unfenced(text string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestDependencies compares docs/dependencies.md with the modules that go.mod requires, here and in lab.
func TestDependencies(t *testing.T) {
	root := repository(t)
	var required, explained []string
	for _, module := range []string{".", "lab"} {
		direct, _, _ := strings.Cut(read(t, filepath.Join(root, module, "go.mod")), "// indirect")
		for _, m := range regexp.MustCompile(`(?m)^\t(\S+[./]\S+) v[0-9]\S*$`).FindAllStringSubmatch(direct, -1) {
			required = append(required, m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z.]+/\S+) \|`).FindAllStringSubmatch(read(t, filepath.Join(root, "docs", "dependencies.md")), -1) {
		explained = append(explained, m[1])
	}
	slices.Sort(required)
	required = slices.Compact(required)
	slices.Sort(explained)
	if !slices.Equal(required, explained) || len(required) == 0 {
		t.Errorf("docs/dependencies.md explains\n%v, go.mod requires\n%v", explained, required)
	}
}
