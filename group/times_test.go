package group

import (
	"strings"
	"testing"
	"time"

	"volley/group/internal/tree"
	"volley/internal/disk/disktest"
)

// TestWholeSeconds has a node on a disk or from an archive that keeps whole seconds, before it was protected or after.
// Other content under an equal time is damage: protect refuses, and recover brings back what was protected and keeps what
// was there. Nothing else is the matter with such a node.
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
		info, err := w.Lstat("/n0/f")
		must(t, err)
		w.Overwrite("/n0/f", 0, []byte("edit"), false)
		w.SetTime("/n0/f", info.ModTime())
		r, err := w.verifyBy(w.Process())
		must(t, err)
		if listed(r.Nodes[0].Findings) != "f damaged, g damaged" {
			t.Errorf("%s: %v", name, r.Nodes[0].Findings)
		}
		if _, err := w.protectBy(w.Process(), ProtectOptions{Full: true}); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: protect: %v", name, err)
		}
		must(t, w.recover())
		for _, p := range []string{"/n0/f", "/n0/g"} {
			if contentOf(w, p) != "data" || contentOf(w, "/n0/.volley/replaced/1"+p[3:]) != "edit" {
				t.Errorf("%s: %s is %q", name, p, contentOf(w, p))
			}
		}
		must(t, w.protect())

		w.Overwrite("/n0/f", 0, []byte("mine"), false)
		w.SetTime("/n0/f", info.ModTime().Add(time.Second))
		must(t, w.recover())
		must(t, w.protect())
		if contentOf(w, "/n0/f") != "mine" {
			t.Errorf("%s: a second later: %q", name, contentOf(w, "/n0/f"))
		}
	}
}
