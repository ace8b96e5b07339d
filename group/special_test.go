package group

import (
	"slices"
	"strings"
	"testing"

	"volley/internal/disk/disktest"
)

// TestOneFileSystem protects a node below which another file system is mounted, with it or without: as it is said, and
// later as it was before. What is left out is not deleted.
func TestOneFileSystem(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	w.MkdirAll("/n1/m", 0o755)
	w.Mount("/n1/m", disktest.Mount{})
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		w.WriteFile("/n1/m/"+name, []byte(name), 0o644)
	}
	yes, no := true, false
	for _, x := range []struct {
		one  *bool
		left bool
	}{{nil, false}, {&yes, true}, {nil, true}, {&no, false}, {nil, false}} {
		r, err := w.protectBy(w.Process(), ProtectOptions{OneFileSystem: x.one})
		if err != nil {
			t.Fatalf("%+v: %v", x, err)
		}
		note := "other file systems that are protected, too: /n1/m"
		if x.left {
			note = "other file systems that are left out: /n1/m"
		}
		if !slices.Equal(r.Mounts, []string{"/n1/m"}) || !slices.Contains(r.Notes, note) {
			t.Errorf("%+v: %v, %v", x, r.Mounts, r.Notes)
		}
		must(t, w.whole())
		c := w.clone()
		c.Unmount("/n1/m")
		c.lose(0, 1)
		must(t, c.recover())
		if has := strings.Contains(c.tree(1), "m/a "); has == x.left {
			t.Errorf("%+v: after the loss of the node:\n%s", x, c.tree(1))
		}
	}
}
