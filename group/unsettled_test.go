package group

import (
	"errors"
	"syscall"
	"testing"

	"volley/internal/disk/disktest"
)

// TestUnsettled has calls of a protect fail, by one rank and by several: where the new generation is in force
// afterwards, or may be, the error says so. After other errors the earlier one is, and stays so.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 3} {
		w := newWorld(3, 1)
		w.ranks, w.inTurn = ranks, ranks == 1
		must(t, w.protect())
		w.WriteFile("/n0/plain", []byte("other content"), 0o644)
		unsettled, settled := 0, 0
		calls := w.Calls(func(p *disktest.Process) {
			c := w.clone()
			_, err := c.protectBy(p, ProtectOptions{})
			must(t, err)
		})
		for i, c := range calls {
			if *mostCalls > 0 && i%21 > 0 && (i%3 > 0 || i < len(calls)*3/4) { // those of the commit are the last
				continue
			}
			x := w.clone()
			p := x.Process()
			p.FailAt(c.N, syscall.EIO)
			_, err := x.protectBy(p, ProtectOptions{})
			switch {
			case err == nil:
				continue
			case errors.As(err, new(*UnsettledError)):
				unsettled++
				continue
			}
			settled++
			r, err := x.statusBy(x.Process())
			must(t, err)
			if r.Generation != 1 {
				t.Errorf("%s %s fails: generation %d is in force, and the error does not say so", c.Op, c.Path, r.Generation)
			}
		}
		if unsettled == 0 || settled == 0 {
			t.Errorf("%d calls fail where it is not settled, %d where it is", unsettled, settled)
		}
	}
}
