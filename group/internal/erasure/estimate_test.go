package erasure

import (
	"testing"

	"volley"
)

// TestEstimate compares estimates with what can be said without a plan: more than R lost nodes do not come back, a lost
// node gets no less than it had, and what is estimated of a protection is what protect says.
func TestEstimate(t *testing.T) {
	t.Parallel()
	set := &Environment{Memory: volley.DefaultMemory, Network: volley.DefaultNetwork()}
	const bytes = 64 << 20
	for _, c := range []struct {
		k, r        int
		lost        []int
		recoverable bool
	}{{8, 2, []int{1, 4}, true}, {8, 2, []int{1, 4, 5}, false}, {6, 2, []int{0}, true}, {6, 2, []int{0, 1, 2, 3}, false}, {8, 2, nil, false}} {
		protect, recovery, err := Estimate(c.k, c.r, bytes, set, c.lost)
		if err != nil || protect.Seconds <= 0 {
			t.Fatalf("%v: %+v, %v", c, protect, err)
		}
		if (recovery != nil) != c.recoverable || c.recoverable && recovery.Seconds <= 0 {
			t.Errorf("%v: recovery %+v, want one %v", c, recovery, c.recoverable)
		}
		if c.recoverable && recovery.SentBytes < bytes { // a lost node gets its data over its own link
			t.Errorf("%v: %d bytes at the busiest node, and a lost node had %d of data", c, recovery.SentBytes, bytes)
		}
		code, err := NewCode(c.k, c.r)
		must(t, err)
		x, err := code.Cost(t.Context(), set, bytes)
		must(t, err)
		if *x != *protect {
			t.Errorf("%v: estimate %+v, protect says %+v", c, protect, x)
		}
	}
	if _, _, err := Estimate(8, 8, bytes, set, nil); err == nil {
		t.Error("8 nodes that may lose 8")
	}
}
