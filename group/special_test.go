package group

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// TestOneFileSystem protects a node below which another file system is mounted, with it or without: as it is said, and
// later as it was before. What is left out is not deleted.
func TestOneFileSystem(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	w.MkdirAll("/n1/m", 0o755)
	w.Mount("/n1/m", disktest.Mount{})
	for _, name := range "abcdefghij" {
		w.WriteFile("/n1/m/"+string(name), []byte{byte(name)}, 0o644)
	}
	yes, no := true, false
	for _, x := range []struct {
		one  *bool
		left bool
		note string
	}{
		{nil, false, "other file systems that are protected, too: /n1/m"}, {&yes, true, "other file systems that are left out: /n1/m"},
		{nil, true, "other file systems that are left out: /n1/m"}, {&no, false, "other file systems that are protected, too: /n1/m"},
	} {
		r, err := w.protectBy(w.Process(), ProtectOptions{OneFileSystem: x.one})
		if err != nil || !slices.Equal(r.Mounts, []string{"/n1/m"}) || !slices.Contains(r.Notes, x.note) {
			t.Fatalf("%+v: %v, %+v", x, err, r)
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
		switch {
		case protected && (err == nil || !strings.Contains(err.Error(), "/n1/lost+found")):
			t.Errorf("it was protected: %v", err)
		case !protected && (err != nil || !slices.Equal(r.Special, []string{"/n1/lost+found cannot be listed: permission denied"})):
			t.Errorf("%+v, %v", r, err)
		case !protected:
			must(t, w.whole())
			w.Lift("/n1/lost+found")
			must(t, w.protect(), w.whole())
		}
	}
}

// TestSpecial protects nodes in which sockets come and go: they are named, and do not count.
func TestSpecial(t *testing.T) {
	t.Parallel()
	var dirs []string
	for range 3 {
		dirs = append(dirs, t.TempDir())
	}
	g, err := Open(dirs, protection.Settings{})
	must(t, err)
	socket := filepath.Join(dirs[1], "socket")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	r, err := g.Protect(t.Context(), ProtectOptions{Tolerate: 1})
	must(t, err)
	if !slices.Equal(r.Special, []string{socket + " is a socket"}) || !slices.Contains(r.Notes, "not protected: "+socket+" is a socket") {
		t.Errorf("%v, %v", r.Special, r.Notes)
	}
	for range 2 { // with it, and without
		if v, err := g.Verify(t.Context(), VerifyOptions{}); err != nil || !v.Intact || v.Nodes[1].Findings != nil {
			t.Errorf("%+v, %v", v, err)
		}
		listener.Close()
	}
}
