package group

import (
	"io/fs"
	"syscall"
	"testing"

	"volley/internal/disk/disktest"
)

// TestClosedAgain opens what Volley keeps to everybody: protect closes it again, but a file that has another name
// elsewhere, whose mode may be meant.
func TestClosedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1)
	must(t, w.protect())
	w.WriteFile("/elsewhere", []byte("for all"), 0o644)
	w.Link("/elsewhere", "/n1/.volley/linked")
	w.WriteFile("/n1/.volley/open", nil, 0o644)
	w.Chmod("/n1/.volley", 0o755)
	w.Chmod("/n1/.volley/lock", 0o644)
	must(t, w.protect())
	for name, want := range map[string]fs.FileMode{"/elsewhere": 0o644, "/n1/.volley/open": 0o600, "/n1/.volley/lock": 0o600, "/n1/.volley": fs.ModeDir | 0o700} {
		if info, err := w.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v: want %v", name, info, err, want)
		}
	}
}

// TestGone removes a node when it is open already: it counts as lost.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	p := w.Process()
	p.Hook = func(c disktest.Call) error {
		if c.Op == "readdir" && c.Path == "/n1" {
			return syscall.ENOENT
		}
		return nil
	}
	r, err := w.verifyBy(p)
	if err != nil || r.Nodes[1].Status != Lost || r.Intact {
		t.Errorf("%v: %+v", err, r)
	}
}
