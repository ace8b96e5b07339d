package group

import (
	"slices"
	"strings"
	"syscall"
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

// TestUnlistable protects a node with a directory that the user may not list: it is named and left out, like a socket. Once
// it was protected, protect stops there, and nothing of it counts as deleted.
func TestUnlistable(t *testing.T) {
	t.Parallel()
	for _, protected := range []bool{false, true} {
		w := newWorld(3, 1)
		w.MkdirAll("/n1/lost+found/deep", 0o700)
		if protected {
			must(t, w.protect())
		}
		w.Deny("/n1/lost+found", syscall.EACCES, "opendir", "readdir", "open")
		r, err := w.protectBy(w.Process(), ProtectOptions{Tolerate: 1})
		if protected {
			if err == nil || !strings.Contains(err.Error(), "/n1/lost+found") {
				t.Errorf("it was protected: %v", err)
			}
			continue
		}
		must(t, err, w.protect(), w.whole())
		if !slices.Equal(r.Special, []string{"/n1/lost+found cannot be listed: permission denied"}) {
			t.Errorf("%q, %q", r.Special, r.Notes)
		}
		before := w.trees()
		w.lose(0, 0)
		must(t, w.recover())
		if !slices.Equal(w.trees(), before) {
			t.Error("a node is not back")
		}
		w.Lift("/n1/lost+found")
		must(t, w.protect(), w.whole())
	}
}
