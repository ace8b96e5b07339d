package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestOutputFiles checks where metrics and group files come.
func TestOutputFiles(t *testing.T) {
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
