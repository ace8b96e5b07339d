package group

import (
	"slices"
	"testing"
	"time"

	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// TestWholeSeconds has a node on a disk or from an archive that keeps whole seconds, before it was protected or after.
// Other content under an equal time may be rot or not: recover leaves it, unless it is told to bring back what was
// protected, and protect names it. Nothing else is the matter with such a node.
func TestWholeSeconds(t *testing.T) {
	t.Parallel()
	cut := func(w *world, dir string) {
		for name := range lines(w.Tree(dir, tree.MetaName)) {
			info, err := w.Lstat(dir + "/" + name)
			must(t, err)
			w.SetTime(dir+"/"+name, info.ModTime().Truncate(time.Second))
		}
	}
	whole := func(w *world, dir string) {
		w.Remount("/", func(o *disktest.Mount) { o.Granularity = time.Second })
		w.CopyTree(dir, "/kept")
		w.RemoveAll(dir)
		w.CopyTree("/kept", dir)
	}
	for name, x := range map[string]struct {
		at            time.Time
		before, after func(w *world, dir string)
	}{
		"an archive":              {time.Unix(1_700_000_000, 5), nil, cut},
		"an archive, before 1970": {time.Unix(-7, 500_000_000), nil, cut},
		"a disk of whole seconds": {time.Unix(1_700_000_000, 999_999_999), nil, whole},
		"whole when protected": {time.Unix(1_700_000_000, 0), cut, func(w *world, dir string) {
			info, err := w.Lstat(dir + "/f")
			must(t, err)
			w.SetTime(dir+"/f", info.ModTime().Add(time.Millisecond))
		}},
	} {
		w := newWorld(3, 1)
		w.WriteFile("/n0/f", []byte("data"), 0o644)
		w.Link("/n0/f", "/n0/g")
		w.SetTime("/n0/f", x.at)
		w.SetTime("/n0/link", x.at)
		if x.before != nil {
			x.before(w, "/n0")
		}
		must(t, w.protect())
		x.after(w, "/n0")
		for _, glance := range []bool{true, false} {
			r, err := w.examineBy(w.Process(), glance)
			must(t, err)
			if r.Nodes[0].Findings != nil {
				t.Errorf("%s, glance %v: %v", name, glance, r.Nodes[0].Findings)
			}
		}
		rotten := w.clone()
		w.Wait(time.Hour)
		must(t, w.protect()) // nothing is the matter
		must(t, w.whole())

		w = rotten
		w.setBack("/n0/f", 0, []byte("edit"))
		r, err := w.verifyBy(w.Process())
		must(t, err)
		if listed(r.Nodes[0].Findings) != "f changed" || r.Nodes[0].Findings[0].Reason == "" {
			t.Errorf("%s: %v", name, r.Nodes[0].Findings)
		}
		c := w.clone()
		if r, err := c.protectBy(c.Process(), ProtectOptions{}); err != nil || !slices.Equal(r.Doubtful, []string{"/n0/f"}) {
			t.Errorf("%s: protect: %+v, %v", name, r, err)
		}
		must(t, w.recover())
		if contentOf(w, "/n0/f") != "edit" {
			t.Errorf("%s: recover: %q", name, contentOf(w, "/n0/f"))
		}
		_, err = w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
		must(t, err)
		for _, p := range []string{"/n0/f", "/n0/g"} {
			if contentOf(w, p) != "data" || contentOf(w, "/n0/.volley/replaced/1"+p[3:]) != "edit" {
				t.Errorf("%s: %s is %q", name, p, contentOf(w, p))
			}
		}
		must(t, w.protect())
	}
}
