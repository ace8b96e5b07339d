package group

import (
	"bytes"
	"path"
	"testing"

	"volley/group/internal/store"
	"volley/internal/disk"
)

// TestRollForwardOther leaves at a node a pending manifest that has the number of the generation
// in force and is another: it is never put in force, and goes when all have committed.
func TestRollForwardOther(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		w := newWorld(3, 1)
		must(t, w.protect())
		name := w.dirs[0] + "/" + manifestPath(1)
		right, _ := w.ReadFile(name)
		m, err := store.DecodeManifest(right)
		must(t, err)
		m.Records[1].SHA256 = disk.Sum([]byte("another"))
		other, err := m.Encode(nil)
		must(t, err)
		w.MkdirAll(w.dirs[0]+"/"+path.Dir(pendingPath(1)), 0o700)
		w.WriteFile(w.dirs[0]+"/"+pendingPath(1), other, 0o600)
		if !own {
			w.Remove(name)
		}
		n := &store.Node{DirName: w.dirs[0]}
		c := w.clone()
		n.Dir, err = c.Process().Open(n.DirName)
		must(t, err)
		must(t, n.RollForward(1, disk.Sum(right)))
		if is, _ := c.ReadFile(w.dirs[0] + "/" + pendingPath(1)); !bytes.Equal(is, other) {
			t.Errorf("own %v: what is pending is gone before all have committed", own)
		}
		must(t, w.recover())
		if is, _ := w.ReadFile(name); !bytes.Equal(is, right) {
			t.Errorf("own %v: the manifest is another", own)
		}
		if w.Exists(w.dirs[0] + "/" + pendingPath(1)) {
			t.Errorf("own %v: another manifest is pending yet", own)
		}
		must(t, w.whole())
		must(t, w.tidy(1))
	}
}
