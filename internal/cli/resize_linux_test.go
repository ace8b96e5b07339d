package cli

import (
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
	do := func(code int, words string, texts ...string) {
		t.Helper()
		args := strings.Fields(words)
		r := f.run(slices.Concat(args[:1], f.flags, args[1:])...)
		if r.code != code {
			t.Fatalf("volley %s: %+v", words, r)
		}
		wants(t, r.stdout+r.stderr, texts...)
	}
	expect(t, exit.OK, "group init --tolerate 1 -o "+file+" a:"+dirs[0]+" b:"+dirs[1]+" c:"+dirs[2], nil)
	by := " --group " + file
	do(exit.OK, "protect"+by)
	do(exit.OK, "resize --add d:"+dirs[3]+by, "added      d:"+dirs[3], "4 nodes, any 1 may be lost", "protected, generation 2")
	do(exit.OK, "resize --add d:"+dirs[3]+" a:"+dirs[0]+" b:"+dirs[1]+" c:"+dirs[2], "note: d:"+dirs[3]+" is a node of the group already, and is not added")
	do(exit.OK, "resize --remove 0"+by, "removed    a:"+dirs[0], "3 nodes, any 1 may be lost", "protected, generation 4")
	removeAll(t, dirs[3])
	do(exit.OK, "recover"+by)
	replaceIn(t, file, "c:"+dirs[2], "/none") // its host does not answer
	do(exit.Usage, "resize --remove /none"+by, "/none is missing what was protected: recover it first; --force gives it up")
	do(exit.OK, "resize --remove /none --force"+by, "2 nodes, any 1 may be lost")
	do(exit.OK, "verify"+by, "whole: 2 nodes")
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	f.ended(t)
}
