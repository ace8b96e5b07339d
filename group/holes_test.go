package group

import (
	"os"
	"strings"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/internal/disk/disktest"
)

// remake makes a file of node 1 one hole, and writes text into it.
func (w *world) remake(t *testing.T, size int64, text string, offset int64) {
	t.Helper()
	d, err := w.Process().Open("/n1")
	must(t, err)
	f, err := d.OpenFile("image", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err, f.Truncate(0), f.Truncate(size))
	_, err = f.WriteAt([]byte(text), offset)
	must(t, err, f.Close())
}

// TestHolesMeanwhile has a program write to a file with holes while protect runs: into a hole that was found, and a hole
// over data that was coded. What the file holds then is protected.
func TestHolesMeanwhile(t *testing.T) {
	t.Parallel()
	const size = 3_000_000
	for _, ranks := range []int{1, 4} {
		for what, now := range map[string]func(c disktest.Call) bool{
			"a hole is filled":    func(c disktest.Call) bool { return c.Op == "read" && c.Path == "/n1/image" },
			"data becomes a hole": func(c disktest.Call) bool { return c.Op == "write" && strings.HasSuffix(c.Path, "/parity") },
		} {
			w := newWorld(4, 2)
			w.ranks = ranks
			w.remake(t, size, strings.Repeat("old", 50_000), 600_000)
			p, done := w.Process(), false
			p.Hook = func(c disktest.Call) error {
				if !done && now(c) {
					done = true
					w.remake(t, size, "new", 2_000_000)
				}
				return nil
			}
			r, err := w.protectBy(p, ProtectOptions{Tolerate: 2})
			must(t, err)
			if !done || len(r.Torn) > 0 {
				t.Errorf("%s: %v, %+v", what, done, r)
			}
			must(t, w.whole())
			want := w.trees()
			w.RemoveAll("/n1")
			w.RemoveAll("/n2")
			must(t, w.recover(), w.whole())
			if err := diff(what, strings.Join(want, ""), strings.Join(w.trees(), "")); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHolesOverKept has a file with holes among so much other data that parity stays, and what changes lies over it. Where
// the file gets a hole, or is longer by one, zeros lie over what was there.
func TestHolesOverKept(t *testing.T) {
	t.Parallel()
	w := wide()
	const block = store.UsualBlock
	text := strings.Repeat("text", block/4)
	for i, change := range []func(){
		func() { w.remake(t, 6*block, text, block) },
		func() { w.remake(t, 6*block, text+text, block) },
		func() { w.remake(t, 6*block, text, 4*block) },
		func() { w.remake(t, 9*block, "", 0) },
	} {
		change()
		w.Wait(time.Minute)
		w.SyncAll()
		must(t, w.protect(), w.whole())
		changes := ""
		for n := range w.dirs {
			changes += changesAt(w, n, int64(i+1))
		}
		if (changes == "") != (i == 0) {
			t.Errorf("%d: changes: %q", i, changes)
		}
		lost := w.clone()
		lost.RemoveAll("/n1")
		lost.RemoveAll("/n2")
		must(t, lost.recover(), lost.whole())
		if err := diff("recovered", strings.Join(w.trees(), ""), strings.Join(lost.trees(), "")); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}
