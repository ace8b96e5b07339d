package group

import (
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// believedFile is a file that is protected.
const believedFile = "/n1/f10"

func rotIn(w *world)     { w.Overwrite(believedFile, 5, []byte("new"), true) }
func written(w *world)   { w.Overwrite(believedFile, 5, []byte("new"), false) }
func mapped(w *world)    { w.WriteMapped(believedFile, 5, []byte("new")) }
func otherMode(w *world) { w.Chmod(believedFile, 0o600); w.Chmod(believedFile, 0o644) }

// A belief is what verify calls a file to which something has happened, and what protect and recover do.
type belief struct {
	what          string
	before, after func(w *world) // it is protected
	verify        string
	refused       bool
	read          bool // by protect, though the rest is not
	named         bool
	stays         bool // what is there, when recover is run
}

var beliefs = []belief{
	{"the same", nil, func(*world) {}, "", false, false, false, true},
	{"rot", nil, rotIn, "f10 damaged", true, false, false, false},
	{"another mode and back", nil, otherMode, "", false, true, false, true},
	{"one more name, elsewhere", nil, func(w *world) { w.Link(believedFile, "/name") }, "", false, true, false, true},
	{"a time set back", nil, func(w *world) { w.setBack(believedFile, 5, []byte("new")) }, "f10 changed", false, true, true, true},
	{"rot, and another mode", nil, func(w *world) { rotIn(w); otherMode(w) }, "f10 changed", false, true, true, true},
	{"another content and time", nil, written, "f10 changed", false, true, false, true},
	{"another time", nil, func(w *world) { w.SetTime(believedFile, w.Now()) }, "f10 metadata", false, true, false, true},
	{"another length, and a time set back", nil, func(w *world) {
		info, _ := w.Lstat(believedFile)
		w.AppendFile(believedFile, []byte("new"))
		w.SetTime(believedFile, info.ModTime())
	}, "f10 changed", false, true, false, true},
	{"another length, by rot", nil, func(w *world) { w.Cut(believedFile, 10) }, "f10 damaged", true, false, false, false},
	{"a clock that went back", nil, func(w *world) { w.Wait(-5 * time.Hour); written(w) }, "f10 changed", false, true, false, true},
	{"a copy of the node that rots", nil, func(w *world) { w.CopyTree("/n1", "/copy"); w.RemoveAll("/n1"); w.Rename("/copy", "/n1"); rotIn(w) }, "f10 changed", false, true, true, true},
	{"rot of a file from the future", func(w *world) {
		w.Wait(5 * time.Hour)
		w.Overwrite(believedFile, 0, []byte("then"), false)
		w.Wait(-5 * time.Hour)
	}, rotIn, "f10 changed", false, true, true, true},
	{"just now, on a disk of whole seconds", func(w *world) {
		w.Remount("/", func(o *disktest.Mount) { o.Granularity = 2 * time.Second })
		w.Overwrite(believedFile, 0, []byte("just now"), false)
	}, written, "f10 changed", false, true, true, true},
	{"a mapping", func(w *world) { w.WriteMapped(believedFile, 5, []byte("old")) }, mapped, "f10 changed", false, true, false, true},
	{"a mapping, in memory", func(w *world) { w.Remount("/", func(o *disktest.Mount) { o.InMemory = true }) }, mapped, "f10 changed", false, true, true, true},
}

// TestBelieved has anything happen to a file that is protected. What verify calls it depends on its ctime, its time, its
// length and its content, and so does what protect and recover do.
func TestBelieved(t *testing.T) {
	t.Parallel()
	for _, x := range beliefs {
		w := many()
		if x.before != nil {
			x.before(w)
		}
		must(t, w.protect())
		was := contentOf(w, believedFile)
		x.after(w)
		r, err := w.verifyBy(w.Process())
		must(t, err)
		if got := listed(r.Nodes[1].Findings); got != x.verify {
			t.Errorf("%s: verify: %s", x.what, got)
		}
		x.protects(t, w.clone())
		for _, revert := range []bool{false, true} {
			want, c := was, w.clone()
			if x.stays && !revert {
				want = contentOf(w, believedFile)
			}
			_, err = c.recoverBy(c.Process(), RecoverOptions{Revert: protection.Edits{Changed: revert}})
			must(t, err)
			if contentOf(c, believedFile) != want {
				t.Errorf("%s: recover, revert %v: other content", x.what, revert)
			}
		}
	}
}

// protects protects the group with the file: what is not refused comes back.
func (x belief) protects(t *testing.T, w *world) {
	t.Helper()
	read, tree, p := false, w.tree(1), w.Process()
	p.Hook = func(call disktest.Call) error {
		read = read || call.Op == "read" && call.Path == believedFile
		return nil
	}
	r, err := w.protectBy(p, ProtectOptions{Full: x.refused})
	refused := IsInputError(err) && strings.Contains(err.Error(), believedFile+" is damaged")
	if refused != x.refused || err != nil && !refused {
		t.Errorf("%s: protect: %v", x.what, err)
	}
	if err != nil {
		return
	}
	if read != x.read || slices.Equal(r.Doubtful, []string{believedFile}) != x.named || len(r.Doubtful) > 1 {
		t.Errorf("%s: protect: read %v, doubtful %q", x.what, read, r.Doubtful)
	}
	must(t, w.whole())
	w.Remount("/", func(o *disktest.Mount) { o.Granularity = 0 })
	w.lose(0, 1)
	must(t, w.recover(), diff(x.what, tree, w.tree(1)))
}
