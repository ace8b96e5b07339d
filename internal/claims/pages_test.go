package claims

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	module "volley"
)

// TestVersion checks that all places with a version have that of version.go, that the CHANGELOG's newest is it, and that the README
// has the version of Go that the module has.
func TestVersion(t *testing.T) {
	root := repository(t)
	of := func(file, pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, filepath.Join(root, file)))
		if m == nil {
			t.Fatalf("no version in %s", file)
		}
		return m[1]
	}
	if needed := of("go.mod", `(?m)^go (\S+)$`); !strings.Contains(fold(read(t, filepath.Join(root, "README.md"))), "Go "+needed+" or later") {
		t.Errorf("go.mod needs Go %s, and the README names another", needed)
	}
	version, _, _ := strings.Cut(module.Version, "+") // and the commit
	next, dev := strings.CutSuffix(version, "-dev")
	if python := of("python/volley/_version.py", `__version__ = "(.+?)"`); python != version {
		t.Errorf("Python's version is %s, and that of version.go %s", python, version)
	}
	released, cited := of("CHANGELOG.md", `(?m)^## ([0-9].*) - [0-9]{4}-[0-9]{2}-[0-9]{2}$`), of("CITATION.cff", `(?m)^version: (.+)$`)
	if released != cited || (released == next) == dev {
		t.Errorf("the newest release is %s, CITATION.cff has %s, and version.go %s", released, cited, version)
	}
	if _, rest, _ := strings.Cut(read(t, filepath.Join(root, "CHANGELOG.md")), "\n## "); strings.HasPrefix(rest, "Unreleased") != dev {
		t.Errorf("CHANGELOG.md begins with %.20q, and version.go has %s", rest, version)
	}
}

// TestModule checks that a program in a module of its own finds what it imports without a network, by the lines that
// docs/library.md has for its go.mod. TestFirstMinutes runs the program.
func TestModule(t *testing.T) {
	root := repository(t)
	_, lines, ok := strings.Cut(read(t, filepath.Join(root, "docs", "library.md")), "\n```text\nrequire volley")
	lines, _, ok2 := strings.Cut(lines, "```\n")
	_, developer, ok3 := strings.Cut(read(t, filepath.Join(root, "docs", "first-minutes.md")), "\n## The developer\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("docs/library.md or docs/first-minutes.md lacks its block")
	}
	dir := t.TempDir()
	minutes(t, dir, developer) // writes main.go
	version, _, _ := strings.Cut(strings.SplitAfterN(read(t, filepath.Join(root, "go.mod")), "\ngo ", 2)[1], "\n")
	for name, text := range map[string]string{
		"go.mod": "module example.org/program\n\ngo " + version + "\n\nrequire volley" + strings.Replace(lines, "../volley", root, 1),
		"go.sum": read(t, filepath.Join(root, "go.sum")), // what go mod tidy would fetch is in the cache
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("go", "list", "-deps", "-mod=mod", ".")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "\nvolley/field/curves\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestMap checks that the map in CONTRIBUTING.md names every folder that has Go code, or a folder
// above it.
func TestMap(t *testing.T) {
	root := repository(t)
	_, table, _ := strings.Cut(read(t, filepath.Join(root, "CONTRIBUTING.md")), "\n## Map\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{".": true}
	for line := range strings.Lines(table) {
		for _, m := range code.FindAllStringSubmatch(line, -1) {
			named[m[1]] = true
		}
	}
	missing := map[string]bool{}
	files(t, root, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			return
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		for up := dir; !named[up]; up = filepath.ToSlash(filepath.Dir(up)) {
			if up == "internal" || !strings.Contains(up, "/") {
				missing[dir] = true
				return
			}
		}
	})
	for dir := range missing {
		t.Errorf("the map in CONTRIBUTING.md has no %s", dir)
	}
}
