package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestSteps compares which steps a change takes with what it can break.
func TestSteps(t *testing.T) {
	const always = "style vet readme"
	everything := make([]string, len(steps))
	for i, s := range steps {
		everything[i] = s.name
	}
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{"docs/protect.md", "README.md", "CHANGELOG.md", ".github/PULL_REQUEST_TEMPLATE.md", landed}, always},
		{[]string{"lab/web/src/App.svelte", "lab/web/dist/assets/app.js", "lab/web/test/run.test.js"}, always + " page"},
		{[]string{"python/volley/__init__.py"}, always + " python torch losses mpi"},
		{[]string{"docs/first-minutes.md"}, always + " python mpi"},
		{[]string{"docs/operations.md"}, always + " hosts"},
		{[]string{"lab/families/doc.go"}, always + " modules race"},
		{[]string{"group/protect.go"}, always + " modules race systems python losses hosts mpi"},
		{[]string{"group/testdata/new"}, always + " modules race systems python losses hosts mpi"},
		{[]string{"internal/ssh/ssh.go"}, always + " modules race systems python losses hosts slurm mpi"},
		{[]string{"internal/cli/help/protect.txt"}, always + " modules race systems python losses hosts slurm mpi"},
		{[]string{"lab/explore/run.go"}, always + " modules race page"},
		{[]string{"transport/mpi/sleep.c"}, always + " modules race systems python losses hosts network mpi"},
		{[]string{"field/kernels_amd64.s"}, always + " modules race kernels systems python losses hosts network mpi page"},
		{[]string{"field/internal/gen/main.go"}, always + " kernels"},
		{[]string{"deploy/slurm/volley.sbatch"}, always + " modules slurm release"},
		{[]string{"group/protect.go", "lab/web/src/App.svelte"}, always + " modules race systems python losses hosts mpi page"},
		{[]string{"go.mod"}, strings.Join(everything, " ")},
		{[]string{"docs/protect.md", "Makefile"}, strings.Join(everything, " ")},
		{[]string{".ci/run"}, strings.Join(everything, " ")},
		{[]string{"nosuch/package.go"}, strings.Join(everything, " ")},
		{[]string{"group/nosuch/package.go"}, strings.Join(everything, " ")},
		{[]string{"data.bin"}, strings.Join(everything, " ")},
	} {
		var got []string
		for _, s := range decided(t, c.files...) {
			if s.reason == "" {
				got = append(got, s.name)
			} else if !strings.Contains(s.reason, " has changed ") {
				t.Errorf("%v: %s: no reason: %q", c.files, s.name, s.reason)
			}
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%v:\n%s, want\n%s", c.files, got, c.want)
		}
	}
}

// TestArguments checks which packages steps take that are told.
func TestArguments(t *testing.T) {
	for _, c := range []struct{ file, step, want string }{
		{"group/protect.go", "race", "./group/... ./internal/cli/... ./internal/launch ./internal/sets ./lab/explore ./lab/verbs"},
		{"group/protect.go", "modules", "./deploy ./deploy/man ./lab/cmd/volley-lab ./lab/explore ./lab/verbs ./lab/web"},
		{"bench/network/raw.go", "modules", "./bench/network"},
		{"group/protect.go", "systems", "./group"},
		{"internal/disk/os_unix.go", "systems", "./..."}, // what it exports may differ
		{"options.go", "systems", "."},
		{"engine/engine.go", "race", "./engine ./group/... ./internal/cli/... ./internal/launch ./lab/verbs"},
		{"lab/explore/doc.go", "race", "./lab/explore ./lab/verbs"},
		{"Makefile", "systems", "./..."},
	} {
		for _, s := range decided(t, c.file) {
			if s.name == c.step && strings.Join(s.args, " ") != c.want {
				t.Errorf("%s: %s %v, want %s", c.file, s.name, s.args, c.want)
			}
		}
	}
}

type decision struct {
	name, reason string
	args         []string
}

var cached graph

func decided(t *testing.T, files ...string) (list []decision) {
	t.Helper()
	if cached == nil {
		var err error
		if cached, err = load(root); err != nil {
			t.Fatal(err)
		}
	}
	all := cached.unknown(files) != ""
	for _, s := range steps {
		args, reason := cached.decide(s, all, files)
		list = append(list, decision{s.name, reason, args})
	}
	return list
}

// TestTable checks that the table of steps, the functions of .ci/run and its lanes are about the same steps, and that
// what the table names is there.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	var lanes []string
	for _, m := range regexp.MustCompile(`(?m)^(?:computing|waiting)="(.*)"$`).FindAllSubmatch(text, -1) {
		lanes = append(lanes, strings.Fields(string(m[1]))...)
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
		if !regexp.MustCompile(`(?m)^` + s.name + `\(\) \{`).Match(text) {
			t.Errorf(".ci/run has no function %s", s.name)
		}
		for _, p := range s.paths {
			if _, err := os.Stat(filepath.Join(root, p)); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
		for _, p := range s.packages {
			if !cachedHas(t, p) {
				t.Errorf("%s: no package %s", s.name, p)
			}
		}
	}
	slices.Sort(lanes)
	slices.Sort(names)
	if !slices.Equal(lanes, names) {
		t.Errorf("the lanes of .ci/run have %v, the table has %v", lanes, names)
	}
	text, err = os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var raced []string
	for _, m := range regexp.MustCompile(`\(call raced,([^,)]+)`).FindAllSubmatch(text, -1) {
		raced = append(raced, strings.Fields(string(m[1]))...)
	}
	for _, s := range steps {
		if s.name == "race" && !slices.Equal(s.packages, raced) {
			t.Errorf("make race takes %v, the table has %v", raced, s.packages)
		}
	}
}

func cachedHas(t *testing.T, pattern string) bool {
	decided(t)
	for dir, p := range cached {
		if p.matches(pattern, dir) {
			return true
		}
	}
	return false
}

// TestBase takes a repository from commit to commit: where it cannot be told what has landed, there is no base.
func TestBase(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	do := func(args ...string) string {
		t.Helper()
		out, err := git(dir, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	commit := func(name, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		do("add", name)
		do("commit", "-q", "-m", "of "+name)
		return do("rev-parse", "HEAD")
	}
	check := func(ci bool, want string) {
		t.Helper()
		if got, why := base(dir, ci); got != want || why == "" {
			t.Errorf("base %q, %s; want %q", got, why, want)
		}
	}
	do("init", "-q", "-b", "main")
	first := commit("one.go", "1")
	check(true, "")
	check(false, "")
	commit(landed, "nosuch\n")
	check(true, "")
	commit(landed, "")
	check(true, "")
	commit(landed, strings.Repeat("1", 40)+"\n")
	check(true, "")
	third := commit(landed, first+"\n")
	check(true, first)
	check(false, first)

	// A commit of another branch says nothing of this one.
	do("checkout", "-q", "-b", "other", first)
	other := commit("two.go", "2")
	do("checkout", "-q", "main")
	commit(landed, other+"\n")
	check(true, "")
	commit(landed, first+"\n")

	// One's own clone knows what origin has. CI's clone has there what is to land.
	do("update-ref", "refs/remotes/origin/main", third)
	do("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	check(false, first) // the tree is as there
	commit("three.go", "3")
	check(false, third)
	check(true, first)

	files, err := changed(dir, third)
	if err != nil || !slices.Equal(files, []string{"three.go"}) {
		t.Errorf("changed %v, %v", files, err)
	}
	for name, text := range map[string]string{"one.go": "changed", "four\n.go": "untracked"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	do("rm", "-q", "three.go")
	do("mv", landed, ".ci/moved")
	files, err = changed(dir, first)
	slices.Sort(files)
	if err != nil || !slices.Equal(files, []string{".ci/moved", "four\n.go", "one.go"}) {
		t.Errorf("changed %q, %v", files, err)
	}
}

// TestRun checks what is printed.
func TestRun(t *testing.T) {
	var out, why bytes.Buffer
	if err := run(&out, &why, root, false, "", []string{"docs/cli.md"}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(steps) || lines[0] != "style" || lines[len(lines)-1] != "- release nothing has changed of deploy, cmd/volley, cmd/libvolley, lab/cmd, version.go" || why.Len() > 0 {
		t.Errorf("%s\n%s", &out, &why)
	}
	out.Reset()
	if err := run(&out, &why, root, true, "", nil); err != nil || strings.Contains(out.String(), "- ") {
		t.Errorf("%v\n%s", err, &out)
	}
	if err := run(&out, &why, root, false, "nosuch", nil); err == nil {
		t.Error("no error where the base is no commit")
	}
}
