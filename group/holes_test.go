package group

import (
	"os"
	"strings"
	"testing"

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
