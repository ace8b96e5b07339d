package tree

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/fuzzlimit"
)

// TestExcludesAsGit compares what patterns exclude with what git ignores.
func TestExcludesAsGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	paths := []string{"a", "b.o", "c.o.d", "x/a", "x/b.o", "x/y/a", "x/y/b.o", "x/y/z/c", "foo/bar", "foo/x/bar", "foo/x/y/bar", "z/foo/bar", "{a,b}", "a*b", "!a", "[a]", "ab", "aab", ".hid", "x/.hid", "q/tmp/file", "q/tmp2/file", "sp ace", "back\\slash", "ümlaut"}
	for _, p := range paths {
		at := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, list := range []string{
		"a", "/a", "*.o", "*", "x/", "x", "/x/y", "x/y/", "x/*", "x/**", "**/y", "**/y/b.o", "foo/**/bar", "**/foo/bar", "foo/bar", "**", "a/**",
		"*.o\n!b.o", "x/*\n!x/y", "*\n!x", "x\n!x/a", "{a,b}", "\\{a,b\\}", "a\\*b", "\\!a", "!a", "[a]", "[!a]", "[^a]", "[ab]*", "\\[a]", "a?b", "?", "a**b", "**b",
		".*", ".hid", "tmp/", "q/*/file", "**/tmp/**", "sp ace", "*.o ", "back\\\\slash", "[a-z]", "x/y/z/c", "/*\n!/x", "**/", "/**", "x/**/", "*/", "a/",
	} {
		patterns := Excludes(strings.Split(list, "\n"))
		if err := patterns.Validate(); err != nil {
			t.Errorf("%q: %v", list, err)
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "info", "exclude"), []byte(list+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		check := exec.Command("git", "-C", dir, "check-ignore", "--no-index", "-z", "--stdin")
		check.Stdin = strings.NewReader(strings.Join(paths, "\x00"))
		out, err := check.Output()
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) { // 1: none is ignored
			t.Fatalf("git check-ignore: %v", err)
		}
		ignored := strings.Split(string(out), "\x00")
		for _, p := range paths {
			git := slices.Contains(ignored, p)
			if is := patterns.Entry(&Entry{Path: Name(p), Type: TypeFile}); is != git {
				t.Errorf("%q: %q is excluded: %v, by git: %v", list, p, is, git)
			}
		}
	}
}

// TestExcludesRefused are no patterns.
func TestExcludesRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "#a", "[a", "a\\", "[[:alpha:]]", "a\x00", strings.Repeat("a", MostPattern+1)} {
		if (Excludes{p}).Validate() == nil {
			t.Errorf("%.40q is taken for a pattern", p)
		}
	}
	if make(Excludes, MostExcludes+1).Validate() == nil {
		t.Error("too many patterns")
	}
}

// FuzzExcludes matches patterns that somebody has made up, in time that is bounded.
func FuzzExcludes(f *testing.F) {
	f.Add("**/a*b*c*/", "x/aaaaabbbc")
	f.Fuzz(func(t *testing.T, p, name string) {
		defer fuzzlimit.Hold(t, len(p)+len(name))()
		if len(p) > 64 || len(name) > 64 || (Excludes{p}).Validate() != nil {
			return
		}
		is := Excludes{p}.Match(name, true)
		if again := (Excludes{p, "!" + strings.TrimPrefix(p, "!")}).Match(name, true); again && !strings.HasPrefix(p, "!") {
			t.Errorf("%q is excluded by %q (%v), and not included again", name, p, is)
		}
	})
}
