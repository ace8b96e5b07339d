package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestRecoverFile brings single files back, here and over ssh.
func TestRecoverFile(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 100_000)
	mustRun(t, append([]string{"protect", "--tolerate", "2"}, dirs...)...)
	ckpt, b := filepath.Join(dirs[1], "ckpt"), filepath.Join(dirs[1], "sub", "b")
	was, err := os.ReadFile(ckpt)
	if err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		if text, err := os.ReadFile(ckpt); err != nil || string(text) != want {
			t.Errorf("%d bytes are there, %v: want %d", len(text), err, len(want))
		}
	}
	for _, run := range []func(args ...string) result{volleyRun, func(args ...string) result { return f.run(f.of(args...)...) }} {
		with := func(args ...string) result { return run(slices.Concat([]string{"recover"}, args, dirs)...) }
		if err := os.Remove(ckpt); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(b); err != nil {
			t.Fatal(err)
		}
		if r := with("--file=/ckpt", "--file=/none"); r.code != exit.Usage || !strings.Contains(r.stderr, `"/none" fits nothing`) {
			t.Errorf("%+v", r)
		}
		if r := with("--file="); r.code != exit.Usage {
			t.Errorf("%+v", r)
		}
		if r := with("--file=/ckpt", "--file=!x"); r.code != exit.OK || !strings.Contains(r.stdout, "1 file  ") || !strings.Contains(r.stdout, "matched    4 files and directories; nothing else was compared") {
			t.Errorf("%+v", r)
		}
		is(string(was))
		if _, err := os.Stat(b); err == nil {
			t.Error("another file came back")
		}
		rewrite(t, ckpt, []byte("changed"))
		if r := with("--file=ckpt", "--revert", "changed", "--dry-run"); r.code != exit.OK || !strings.Contains(r.stdout, "would be reverted: ") {
			t.Errorf("%+v", r)
		}
		is("changed")
		out := filepath.Join(t.TempDir(), "out")
		if r := with("--file=ckpt", "--to="+out); r.code != exit.OK {
			t.Errorf("%+v", r)
		}
		is("changed")
		for n := range dirs {
			old, err := os.ReadFile(filepath.Join(out, "node."+string(rune('0'+n)), "ckpt"))
			if err != nil || n == 1 && string(old) != string(was) {
				t.Errorf("of node %d: %d bytes, %v", n, len(old), err)
			}
		}
		if r := with("--file=ckpt", "--revert", "changed"); r.code != exit.OK {
			t.Errorf("%+v", r)
		}
		is(string(was))
		if r := with("--revert", "deleted"); r.code != exit.OK {
			t.Errorf("%+v", r)
		}
	}
	f.ended(t)
}
