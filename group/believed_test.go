package group

import (
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// TestBelieved has anything happen to a file that is protected. What verify calls it depends on its ctime, its time, its
// length and its content, and so does what protect and recover do.
func TestBelieved(t *testing.T) {
	t.Parallel()
	const name = "/n1/f10"
	rot := func(w *world) { w.Overwrite(name, 5, []byte("new"), true) }
	back := func(w *world) { w.setBack(name, 5, []byte("new")) }
	seconds := func(w *world) { w.Remount("/", func(o *disktest.Mount) { o.Granularity = 2 * time.Second }) }
	for _, x := range []struct {
		what          string
		before, after func(w *world) // it is protected
		verify        string
		refused       bool
		read          bool // by protect, though the rest is not
		named         bool
		stays         bool // what is there, when recover is run
	}{
		{"the same", nil, func(*world) {}, "", false, false, false, true},
		{"rot", nil, rot, "f10 damaged", true, false, false, false},
		{"another mode and back", nil, func(w *world) { w.Chmod(name, 0o600); w.Chmod(name, 0o644) }, "", false, true, false, true},
		{"one more name, elsewhere", nil, func(w *world) { w.Link(name, "/name") }, "", false, true, false, true},
		{"a time set back", nil, back, "f10 changed", false, true, true, true},
		{"rot, and another mode", nil, func(w *world) { rot(w); w.Chmod(name, 0o600); w.Chmod(name, 0o644) }, "f10 changed", false, true, true, true},
		{"another content and time", nil, func(w *world) { w.Overwrite(name, 5, []byte("new"), false) }, "f10 changed", false, true, false, true},
		{"another time", nil, func(w *world) { w.SetTime(name, w.Now()) }, "f10 metadata", false, true, false, true},
		{"another length, and a time set back", nil, func(w *world) {
			info, _ := w.Lstat(name)
			w.AppendFile(name, []byte("new"))
			w.SetTime(name, info.ModTime())
		}, "f10 changed", false, true, false, true},
		{"another length, by rot", nil, func(w *world) { w.Cut(name, 10) }, "f10 damaged", true, false, false, false},
		{"a clock that went back", nil, func(w *world) { w.Wait(-5 * time.Hour); w.Overwrite(name, 5, []byte("new"), false) }, "f10 changed", false, true, false, true},
		{"a copy of the node that rots", nil, func(w *world) { w.CopyTree("/n1", "/copy"); w.RemoveAll("/n1"); w.Rename("/copy", "/n1"); rot(w) }, "f10 changed", false, true, true, true},
		{"rot of a file from the future", func(w *world) {
			w.Wait(5 * time.Hour)
			w.Overwrite(name, 0, []byte("then"), false)
			w.Wait(-5 * time.Hour)
		}, rot, "f10 changed", false, true, true, true},
		{"just now, on a disk of whole seconds", func(w *world) { seconds(w); w.Overwrite(name, 0, []byte("just now"), false) }, func(w *world) { w.Overwrite(name, 5, []byte("new"), false) }, "f10 changed", false, true, true, true},
		{"a mapping", func(w *world) { w.WriteMapped(name, 5, []byte("old")) }, func(w *world) { w.WriteMapped(name, 5, []byte("new")) }, "f10 changed", false, true, false, true},
		{"a mapping, in memory", func(w *world) { w.Remount("/", func(o *disktest.Mount) { o.InMemory = true }) }, func(w *world) { w.WriteMapped(name, 5, []byte("new")) }, "f10 changed", false, true, true, true},
	} {
		w := many()
		if x.before != nil {
			x.before(w)
		}
		must(t, w.protect())
		was := contentOf(w, name)
		x.after(w)
		is, tree := contentOf(w, name), w.tree(1)
		r, err := w.verifyBy(w.Process())
		must(t, err)
		if got := listed(r.Nodes[1].Findings); got != x.verify {
			t.Errorf("%s: verify: %s", x.what, got)
		}
		c := w.clone()
		read := false
		p := c.Process()
		p.Hook = func(call disktest.Call) error {
			read = read || call.Op == "read" && call.Path == name
			return nil
		}
		report, err := c.protectBy(p, ProtectOptions{Full: x.refused})
		switch refused := IsInputError(err) && strings.Contains(err.Error(), name+" is damaged"); {
		case refused != x.refused || err != nil && !refused:
			t.Errorf("%s: protect: %v", x.what, err)
		case err == nil:
			if read != x.read || slices.Equal(report.Doubtful, []string{name}) != x.named || len(report.Doubtful) > 1 {
				t.Errorf("%s: protect: read %v, doubtful %q", x.what, read, report.Doubtful)
			}
			must(t, c.whole())
			c.Remount("/", func(o *disktest.Mount) { o.Granularity = 0 })
			c.lose(0, 1)
			must(t, c.recover())
			must(t, diff(x.what, tree, c.tree(1)))
		}
		for revert, want := range map[bool]string{false: was, true: was} {
			if x.stays && !revert {
				want = is
			}
			c := w.clone()
			_, err = c.recoverBy(c.Process(), RecoverOptions{Revert: protection.Edits{Changed: revert}})
			must(t, err)
			if got := contentOf(c, name); got != want {
				t.Errorf("%s: recover, revert %v: other content", x.what, revert)
			}
		}
	}
}

// TestUnsure asks for the status of nodes whose files have another ctime alone: a note says that it cannot tell what they
// hold, until protect has read them.
func TestUnsure(t *testing.T) {
	t.Parallel()
	w := many()
	must(t, w.protect())
	w.setBack("/n1/f10", 5, []byte("new"))
	w.Chmod("/n2/f11", 0o600)
	noted := func() bool {
		r, err := w.examineBy(w.Process(), true)
		must(t, err)
		return slices.ContainsFunc(r.Notes, func(note string) bool { return strings.HasPrefix(note, "2 files, /n1/f10 first: length and time") })
	}
	if !noted() {
		t.Error("no note")
	}
	w.Wait(time.Hour)
	if must(t, w.protect()); noted() {
		t.Error("a note, although protect has read the files")
	}
}
