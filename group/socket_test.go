package group_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"volley/group"
	"volley/group/protection"
)

// TestSpecial protects nodes in which sockets come and go: they are named, and do not count.
func TestSpecial(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 3, 1, 10_000, 5)
	g, err := group.Open(dirs, protection.Settings{})
	must(t, err)
	defer g.Close()
	socket := filepath.Join(dirs[1], "socket")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	r, err := g.Protect(t.Context(), group.ProtectOptions{Tolerate: 1})
	must(t, err)
	if !slices.Equal(r.Special, []string{socket + " is a socket"}) || !slices.Contains(r.Notes, "not protected: "+socket+" is a socket") {
		t.Errorf("%v, %v", r.Special, r.Notes)
	}
	for range 2 { // with it, and without
		v, err := g.Verify(t.Context(), group.VerifyOptions{})
		if must(t, err); !v.Intact || v.Nodes[1].Findings != nil {
			t.Errorf("%+v", v)
		}
		listener.Close()
	}
	must(t, os.RemoveAll(dirs[1]))
	_, err = g.Recover(t.Context(), group.RecoverOptions{})
	must(t, err)
	if v, err := g.Verify(t.Context(), group.VerifyOptions{}); err != nil || !v.Intact {
		t.Errorf("%+v, %v", v, err)
	}
}
