package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestCostOutput checks that a file is written whole, or stays as it was.
func TestCostOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "c2.csv")
	if out := mustRun(t, "cost", "-k", "2..9", "--format", "csv", "-o", name); out != "" {
		t.Errorf("printed %q", out)
	}
	if got, want := readFile(t, name), mustRun(t, "cost", "-k", "2..9", "--format", "csv"); string(got) != want {
		t.Error("the file is not what would be printed")
	}
	mustRun(t, "cost", "-k", "4", "-o", name) // replaces it
	before := readFile(t, name)
	for _, args := range []string{"-k 1 -p 0", "-k x", "-k 4 --format eps"} {
		if r := volleyRun(append([]string{"cost", "-o", name}, strings.Fields(args)...)...); r.code != exit.Usage {
			t.Errorf("%s: exit %d", args, r.code)
		}
	}
	if !bytes.Equal(before, readFile(t, name)) || !bytes.Contains(before, []byte("universal")) {
		t.Errorf("the file has become %q", readFile(t, name))
	}
	if names := listDir(t, dir); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
	if err := os.Symlink("/dev/null", filepath.Join(dir, "null")); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{dir, filepath.Join(dir, "null"), filepath.Join(dir, "no", "file"), filepath.Join(name, "file")} {
		if r := volleyRun("cost", "-k", "4", "-o", to); r.code != exit.Usage || !strings.Contains(r.stderr, to) {
			t.Errorf("-o %s: exit %d, %s", to, r.code, r.stderr)
		}
	}
}

// TestOutputSuffix checks that the suffix of -o is the format, that --format counts more, and that
// a file is what would be printed.
func TestOutputSuffix(t *testing.T) {
	for _, c := range []struct{ verb, file, format string }{
		{"plan -k 3", "a.txt", "text"}, {"plan -k 3", "a.json", "json"}, {"plan -k 3 --why", "why", "text"},
		{"plan -k 3", "a.csv", "csv"}, {"plan -k 3 --processor 1", "A.JSON", "json"}, {"plan -k 3 --json", "a.txt", "json"},
		{"cost -k 3", "a.csv", "csv"}, {"cost -k 3", "a.b", "text"}, {"cost -k 3", "a.dat --format csv", "csv"},
		{"matrix -k 3", "a", "csv"}, {"matrix -k 3", "a.json", "json"}, {"matrix -k 3", "a.json --format csv", "csv"},
		{"algorithms", "a.csv", "csv"}, {"fields", "a.json", "json"}, {"matrix -k 3 --json", "-", "json"},
	} {
		dir := t.TempDir()
		name, given, _ := strings.Cut(c.file, " ")
		to := name
		if to != "-" {
			to = filepath.Join(dir, name)
		}
		args := append(append(strings.Fields(c.verb), "-o", to), strings.Fields(given)...)
		want := mustRun(t, append(strings.Fields(c.verb), "--format", c.format)...)
		if name == "a.b" {
			if r := volleyRun(args...); r.code != exit.Usage || !strings.Contains(r.stderr, "unknown suffix .b: want .txt, .csv, .json") || len(listDir(t, dir)) > 0 {
				t.Errorf("%v: %+v", args, r)
			}
			continue
		}
		out := mustRun(t, args...)
		if name == "-" {
			if out != want {
				t.Errorf("%v: printed %q", args, out)
			}
		} else if got := string(readFile(t, to)); out != "" || got != want || len(listDir(t, dir)) != 1 {
			t.Errorf("%v: %q, printed %q", args, got, out)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("packet", []byte("data"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := volleyRun("verify", "--metrics", "-", "a"); r.code != exit.Usage || !strings.Contains(r.stderr, "name ") || len(listDir(t, ".")) != 1 {
		t.Errorf("%+v, %v", r, listDir(t, "."))
	}
	mustRun(t, "group", "init", "-o", "group.yaml", "--tolerate", "1", "a", "b")
	if out := mustRun(t, "group", "init", "-o", "-", "--tolerate", "1", "a", "b"); out != string(readFile(t, "group.yaml")) {
		t.Errorf("%q", out)
	}
	name := filepath.Join(t.TempDir(), "a.json")
	if r := volleyRun("plan", "-k", "3", "--why", "-o", name); r.code != exit.Usage || !strings.Contains(r.stderr, "--why") {
		t.Errorf("%+v", r)
	}
}

// TestPictures checks that each verb says which command makes a picture of what it prints, and leaves no file.
func TestPictures(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"plan -k 4":   "volley plan … --json | volley-lab draw - -o FILE",
		"matrix -k 4": "volley matrix … --json | volley-lab draw - -o FILE",
		"cost -k 4":   "volley-lab chart -o FILE, with the same flags",
	} {
		for _, how := range []string{"-o a.svg", "-o a.PDF"} {
			r := volleyRun(strings.Fields(args + " " + how)...)
			if r.code != exit.Usage || !strings.Contains(r.stderr, want) || r.stdout != "" || len(listDir(t, ".")) > 0 {
				t.Errorf("%s %s: %+v, %v", args, how, r, listDir(t, "."))
			}
		}
	}
	if r := volleyRun("algorithms", "--format", "svg"); r.code != exit.Usage || !strings.Contains(r.stderr, "want text or csv or json") {
		t.Errorf("of algorithms there is no picture: %+v", r)
	}
	if out := mustRun(t, "plan", "-k", "4", "-o", "-"); out != mustRun(t, "plan", "-k", "4") {
		t.Errorf("-o - printed %q", out)
	}
}

func TestCostUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"-p 0", "0 ports"},
		{"-p 1,x", `"x"`},
		{"-p 4..1", "4..1"},
		{"--rounds-over -1", "-1"},
		{"--rounds-over 0..", `"0.."`},
		{"--algorithm universal,magic", "magic"},
		{"--algorithm universal,auto", "auto"},
		{"--algorithm universal,dft", "--matrix"},
		{"--algorithm ,", `""`},
		{"-k 1..65536 -p 1,2", "65536 rows"},
		{"--format eps", "want text or csv or json"},
		{"--size 1KiB..1MiB", "--size"},
		{"--matrix cauchy --algorithm lagrange -k 4", "lagrange"},
		{"-k 16 --field 257 --matrix lagrange --algorithm lagrange --rounds-over 0", "--rounds-over"},
		{"--matrix cauchy --algorithm lagrange,dft -k 4", "no algorithm for this: dft"},
	} {
		r := volleyRun(append([]string{"cost"}, strings.Fields(c.args)...)...)
		if r.code != exit.Usage || r.stdout != "" || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, printed %q, %q does not contain %q", c.args, r.code, r.stdout, r.stderr, c.want)
		}
	}
	for _, args := range []string{"--format text", "--format csv"} {
		var stderr strings.Builder
		code := run(context.Background(), append([]string{"cost", "-k", "4"}, strings.Fields(args)...), fullDisk{}, &stderr)
		if code != exit.Failed || !strings.Contains(stderr.String(), errFull.Error()) {
			t.Errorf("%s on a full disk: exit %d, %q", args, code, stderr.String())
		}
	}
}

// TestCostInterrupt checks that what takes long can be stopped.
func TestCostInterrupt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(exit.ErrInterrupted)
	var stdout, stderr strings.Builder
	if code := run(ctx, []string{"cost", "-k", "64"}, &stdout, &stderr); code != exit.Interrupted || stdout.String() != "" {
		t.Errorf("exit %d, %s%s", code, stdout.String(), stderr.String())
	}
}
