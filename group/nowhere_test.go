package group

import (
	"strings"
	"testing"
)

// TestNowhere has a node be a symbolic link that leads nowhere, as where what it leads to is not mounted: recover says so,
// and what to do. Where the link is removed, or leads somewhere, the node comes back.
func TestNowhere(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(w *world){
		"removed": func(w *world) { w.Remove("/n1") },
		"mounted": func(w *world) { w.MkdirAll("/elsewhere", 0o755) },
	} {
		w := newWorld(4, 2)
		must(t, w.protect())
		was := w.tree(1)
		w.RemoveAll("/n1")
		w.Symlink("elsewhere", "/n1")
		v, err := w.statusBy(w.Process())
		must(t, err)
		if v.Nodes[1].Status != Lost {
			t.Errorf("%+v", v.Nodes[1])
		}
		r, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		if err := r.Incomplete(); err == nil || !strings.Contains(err.Error(), "/n1: it is a symbolic link that leads nowhere: mount what it leads to, or remove the link") {
			t.Errorf("%v", err)
		}
		mend(w)
		must(t, w.recover())
		must(t, w.whole())
		if name == "removed" {
			must(t, diff(name, was, w.tree(1)))
		} else {
			must(t, diff(name, was, w.Tree("/elsewhere", ".volley")))
		}
	}
}
