package cli

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/testprogram"
)

// TestExploreElsewhere starts volley-lab where it is on PATH, and says where to get it where it is not.
func TestExploreElsewhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script of a shell")
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if r := volleyRun("explore"); r.code != exit.Usage || !strings.Contains(r.stderr, "go build ./lab/cmd/volley-lab") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	script := "#!/bin/sh\necho \"$@\"\necho said >&2\nexit %d\n"
	for _, code := range []int{0, 2, 7} {
		if err := testprogram.Write(filepath.Join(bin, session.LabName), fmt.Appendf(nil, script, code)); err != nil {
			t.Fatal(err)
		}
		r := volleyRun("explore", "--addr", "127.0.0.1:0", "--open=false", "--new")
		if r.code != code || r.stdout != "explore --addr 127.0.0.1:0 --open=false --new\n" || r.stderr != "said\n" {
			t.Errorf("%+v: want exit code %d, and what the program says", r, code)
		}
	}
	if r := volleyRun("explore", "--help"); r.code != exit.OK || !strings.Contains(r.stdout, "volley-lab explore --help") {
		t.Errorf("%+v", r)
	}
}

// TestFieldElsewhere checks that an error says which command has a field.
func TestFieldElsewhere(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"plan -k 4 --field goldilocks", "fields --field x", "cost --field bn254", "encode --field bls12-381 -o out ."} {
		r := volleyRun(strings.Fields(args)...)
		if r.code != exit.Usage || strings.Contains(r.stderr, "volley-lab has it") == strings.HasPrefix(args, "fields") {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if out := mustRun(t, "fields"); strings.Contains(out, "goldilocks") || !strings.Contains(out, "babybear") {
		t.Errorf("%s", out)
	}
}

// TestHelpBegins checks that the help begins with what operators do.
func TestHelpBegins(t *testing.T) {
	t.Parallel()
	at := 0
	for _, verb := range []string{"protect", "recover", "encode", "decode", "plan", "cost"} {
		i := strings.Index(mustRun(t, "--help"), "\n  "+verb+" ")
		if i <= at {
			t.Errorf("%s comes at %d, and what it follows at %d", verb, i, at)
		}
		at = i
	}
}
