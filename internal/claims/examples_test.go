package claims

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// verbs returns the verbs of the command line, as its help lists them.
func verbs(t *testing.T) []string {
	t.Helper()
	list, _, _ := strings.Cut(volley(t, "--help"), "\nFlags:\n")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) {2}`).FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	if len(names) < 15 {
		t.Fatalf("the help lists no verbs but %v", names)
	}
	return names
}

// example runs a line of a document, which has to succeed.
func example(t *testing.T, where, line string) {
	t.Helper()
	args, to, err := words(line)
	if err != nil {
		t.Errorf("%s: %s: %v", where, line, err)
		return
	}
	if _, errs, code := execute(t, args, to); code != 0 {
		t.Errorf("%s: %s: exit %d, %s", where, line, code, errs)
	}
}

// claimed reports whether testdata has a command, which TestClaims then runs.
func claimed(t *testing.T, root, line string) bool {
	t.Helper()
	line, _, _ = strings.Cut(strings.Replace(line, "go run ./cmd/volley", "volley", 1), " #")
	return slices.ContainsFunc(claimFiles(t, root), func(name string) bool {
		return strings.Contains(read(t, name), "\n$ "+strings.TrimSpace(line)+" ")
	})
}

// TestShellBlocks runs the commands in the blocks of the documents, those of a document in one
// directory, in order, but for those of "volley cost" that TestClaims runs, and those for which TestOperations has hosts.
func TestShellBlocks(t *testing.T) {
	root := repository(t)
	blocks := 0
	for _, document := range documents(t, root) {
		if document == filepath.Join("docs", "operations.md") {
			continue
		}
		text := read(t, filepath.Join(root, document))
		t.Run(document, func(t *testing.T) {
			inCopy(t, root)
			on := false
			for line := range strings.Lines(text) {
				line = strings.TrimSpace(line)
				switch {
				case strings.HasPrefix(line, "```"):
					if on = line == "```sh"; on {
						blocks++
					}
				case on && line != "" && line != "go test ./...": // which is what runs this
					if !strings.HasPrefix(line, "go run ./cmd/volley cost") || !claimed(t, root, line) {
						example(t, document, line)
					}
				}
			}
		})
	}
	if blocks < 4 {
		t.Errorf("%d blocks: were they found?", blocks)
	}
}

var (
	inline = regexp.MustCompile("`((?:go run \\./cmd/volley|volley) [^`]*)`")
	flag   = regexp.MustCompile(`(?:^|\s)(--?[a-z][a-z-]*)`)
	quoted = regexp.MustCompile(`'[^']*'`) // commands of others
	target = regexp.MustCompile("`make ([a-z-]+)`")
)

// otherFlags are the flags that no help here has: cobra's, that of the tag mpi (whose tests
// use it), those of volley-lab explore, and mpirun's.
var otherFlags = []string{"--help", "--per-rank", "--addr", "--public", "--oversubscribe", "--bind-to"}

// helps returns the help of each verb and of those below it, by their names, with the topics that it refers to.
func helps(t *testing.T) map[string]string {
	t.Helper()
	help := map[string]string{}
	for _, verb := range append(verbs(t), "rank") { // which a forced command of ssh has
		help[verb] = volley(t, verb, "--help")
		for _, topic := range []string{"tuning", "ranks"} {
			if strings.Contains(help[verb], "volley help "+topic) {
				help[verb] += volley(t, "help", topic)
			}
		}
		_, below, _ := strings.Cut(help[verb], "\nAvailable Commands:\n")
		below, _, _ = strings.Cut(below, "\n\n")
		for line := range strings.Lines(below) {
			name := strings.Fields(line)[0]
			help[verb+" "+name] = volley(t, verb, name, "--help")
		}
	}
	return help
}

// TestInlineCommands checks commands in the text of documents: those that say for which K run;
// of all others there are the verb and the flags. So there are of flags alone, for some verb. The change log has earlier ones.
func TestInlineCommands(t *testing.T) {
	root := repository(t)
	help := helps(t)
	all := strings.Join(slices.Collect(maps.Values(help)), "")
	has := func(help, flag string) bool {
		return regexp.MustCompile(`(?m)(^|[ ,])` + flag + `[ ,]`).MatchString(help)
	}
	makefile := read(t, filepath.Join(root, "Makefile"))
	runs, looks := 0, 0
	for _, document := range documents(t, root) {
		if document == "CHANGELOG.md" {
			continue
		}
		text := unfenced(read(t, filepath.Join(root, document)))
		inCopy(t, root)
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			line := strings.Replace(fold(m[1]), "go run ./cmd/volley", "volley", 1)
			if strings.Contains(line, " -k ") && !strings.Contains(line, "…") {
				if runs++; !claimed(t, root, line) {
					example(t, document, line)
				}
				continue
			}
			looks++
			words := append(strings.Fields(line), "")
			verb := words[1]
			if help[verb+" "+words[2]] != "" {
				verb += " " + words[2]
			}
			if help[verb] == "" {
				t.Errorf("%s: %s: there is no such verb", document, line)
			}
			for _, f := range flag.FindAllStringSubmatch(quoted.ReplaceAllString(line, ""), -1) {
				if !has(help[verb], f[1]) {
					t.Errorf("%s: %s: there is no flag %s", document, line, f[1])
				}
			}
		}
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "--") {
				looks++
				if f := strings.Fields(m[1])[0]; !has(all, f) && !slices.Contains(otherFlags, f) {
					t.Errorf("%s: there is no flag %s", document, f)
				}
			}
		}
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no make %s", document, m[1])
			}
		}
	}
	if runs < 1 || looks < 50 {
		t.Errorf("%d commands and %d flags: were they found?", runs, looks)
	}
}
