package erasure

import (
	"testing"

	"volley/group/internal/content"
)

// TestRepairing checks how the relay that brings packets back is cut.
func TestRepairing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		k, r   int
		pieces int
	}{{4, 2, 64}, {20, 2, mostPieces}, {2, 1, 32}} {
		c, err := NewCode(x.k, x.r)
		must(t, err)
		lost := map[content.Symbol]bool{{Node: 1, Parity: false, Index: 0}: true}
		r, beyond, err := c.Repairing(t.Context(), lost, lost)
		if err != nil || beyond != nil || r.Traffic.Pieces != x.pieces || len(r.Outputs[1]) != 1 {
			t.Errorf("%+v: %+v, %v, %v", x, r, beyond, err)
		}
	}
	c, err := NewCode(4, 1)
	must(t, err)
	lost := map[content.Symbol]bool{{Node: 0, Parity: false, Index: 0}: true, {Node: 0, Parity: true, Index: 0}: true, {Node: 1, Parity: false, Index: 0}: true, {Node: 1, Parity: false, Index: 1}: true, {Node: 1, Parity: false, Index: 2}: true, {Node: 1, Parity: true, Index: 0}: true}
	r, beyond, err := c.Repairing(t.Context(), lost, map[content.Symbol]bool{{Node: 0, Parity: false, Index: 0}: true, {Node: 1, Parity: true, Index: 0}: true})
	if err != nil || len(beyond)+len(r.Outputs[0])+len(r.Outputs[1]) != 2 || len(beyond) == 0 {
		t.Errorf("%v beyond, %+v, %v", beyond, r, err)
	}
}
