package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestLaunchResize adds a host to a group of three, removes another, and loses one of those that are left.
func TestLaunchResize(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 30_000)
	before := contents(t, dirs)
	file := filepath.Join(t.TempDir(), "group.yaml")
	do := func(code int, args ...string) string {
		t.Helper()
		r := f.run(slices.Concat(args[:1], f.flags, args[1:])...)
		if r.code != code {
			t.Fatalf("volley %v: %+v", args, r)
		}
		return r.stdout + r.stderr
	}
	mustRun(t, "group", "init", "--tolerate", "1", "-o", file, "a:"+dirs[0], "b:"+dirs[1], "c:"+dirs[2])
	do(exit.OK, "protect", "--group", file)
	wants(t, do(exit.OK, "resize", "--group", file, "--add", "d:"+dirs[3]), "added      d:"+dirs[3], "4 nodes, any 1 may be lost", "protected, generation 2")
	already := "note: d:" + dirs[3] + " is a node of the group already, and is not added"
	if is := do(exit.OK, "resize", "--add", "d:"+dirs[3], "a:"+dirs[0], "b:"+dirs[1], "c:"+dirs[2]); !strings.Contains(is, already) || strings.Contains(is, "added   ") {
		t.Errorf("%s", is)
	}
	wants(t, do(exit.OK, "verify", "--group", file), "whole: 4 nodes")
	wants(t, do(exit.Usage, "resize", "--remove", "9", "a:"+dirs[0], "b:"+dirs[1], "c:"+dirs[2], "d:"+dirs[3]), `"9" is to be removed, and is no node`)
	wants(t, do(exit.OK, "resize", "--group", file, "--remove", "0"), "removed    a:"+dirs[0], "3 nodes, any 1 may be lost", "protected, generation 4")
	if _, err := os.Lstat(filepath.Join(dirs[0], ".volley")); err == nil {
		t.Errorf("%s has a .volley", dirs[0])
	}
	removeAll(t, dirs[3])
	do(exit.OK, "recover", "--group", file)
	wants(t, do(exit.OK, "verify", "--group", file), "whole: 3 nodes")
	replaceIn(t, file, "c:"+dirs[2], "/none") // its host does not answer
	wants(t, do(exit.Usage, "resize", "--group", file, "--remove", "/none"), "/none is missing what was protected: recover it first; --force gives it up")
	wants(t, do(exit.OK, "resize", "--group", file, "--remove", "/none", "--force"), "2 nodes, any 1 may be lost")
	wants(t, do(exit.OK, "verify", "--group", file), "whole: 2 nodes")
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	f.ended(t)
}
