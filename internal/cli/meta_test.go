package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestMeta keeps what Volley writes elsewhere: the nodes get nothing, and what is lost comes back.
func TestMeta(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	meta := filepath.Join(base, "meta")
	args := []string{"--meta", meta}
	for _, name := range []string{"a", "b", "c"} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, dir)
	}
	run := func(code int, verb ...string) {
		t.Helper()
		if r := volleyRun(append(verb, args...)...); r.code != code {
			t.Errorf("%q: %+v: want exit code %d", verb, r, code)
		}
	}
	if r := volleyRun(append([]string{"recover"}, args...)...); r.code != exit.Absent || !strings.Contains(r.stderr, "no node has a valid manifest in "+meta) {
		t.Errorf("%+v", r)
	}
	if list, err := os.ReadDir(meta); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run that was refused leaves %v, %v", list, err)
	}
	run(exit.OK, "protect", "--tolerate", "1")
	for _, name := range []string{"a", "b", "c"} {
		if list, err := os.ReadDir(filepath.Join(base, name)); err != nil || len(list) != 1 {
			t.Errorf("%s has %v, %v", name, list, err)
		}
	}
	run(exit.OK, "verify")
	parity := filepath.Join(meta, "node.2", "generation.1", "parity")
	removeAll(t, parity)
	if r := volleyRun(append([]string{"verify"}, args...)...); r.code != exit.Wrong || !strings.Contains(r.stdout, fmt.Sprintf("missing: %q", parity)) {
		t.Errorf("%+v", r)
	}
	run(exit.OK, "recover")
	removeAll(t, filepath.Join(base, "b"))
	run(exit.Wrong, "verify")
	run(exit.OK, "recover")
	if text, err := os.ReadFile(filepath.Join(base, "b", "file")); string(text) != "of b" {
		t.Errorf("%q, %v", text, err)
	}
	run(exit.Usage, "resize", "--remove", args[3])
	run(exit.Usage, "protect", "--tolerate", "1", "--group-size", "3")
	args[1] = args[2]
	run(exit.Usage, "protect", "--tolerate", "1")
}
