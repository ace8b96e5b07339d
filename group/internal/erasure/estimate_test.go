package erasure

import (
	"fmt"
	"testing"

	"volley"
	"volley/group/internal/store"
)

// TestEstimate compares estimates with what can be said without a plan: more than R lost nodes do not come back, a lost
// node gets no less than it had, and what is estimated of a protection is what protect says of its layouts.
func TestEstimate(t *testing.T) {
	t.Parallel()
	set := &Setting{Memory: volley.DefaultMemory, Network: volley.DefaultNetwork()}
	const bytes = 64 << 20
	for _, c := range []struct {
		k, r   int
		layout string
		lost   []int
		back   bool
	}{{8, 2, store.Striped, []int{1, 4}, true}, {8, 2, store.Striped, []int{1, 4, 5}, false}, {6, 2, store.Full, []int{0}, true}, {6, 2, store.Full, []int{0, 1, 2, 3}, false}, {8, 2, store.Striped, nil, false}} {
		protect, recovery, err := Estimate(c.k, c.r, c.layout, bytes, set, c.lost)
		if err != nil || protect.Seconds <= 0 || !protect.Possible {
			t.Fatalf("%v: %+v, %v", c, protect, err)
		}
		if recovery.Possible != c.back || (recovery.Seconds > 0) != c.back {
			t.Errorf("%v: recovery %+v, want possible %v", c, recovery, c.back)
		}
		if c.back && recovery.SentBytes < bytes { // a lost node gets its data over its own link
			t.Errorf("%v: %d bytes at the busiest node, and a lost node had %d of data", c, recovery.SentBytes, bytes)
		}
		list, err := Candidates(c.k, c.r, c.layout, store.Cauchy)
		if err != nil {
			t.Fatal(err)
		}
		if err := SetCosts(t.Context(), set, list, bytes); err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if x.Layout == c.layout && fmt.Sprint(x.LayoutCost) != fmt.Sprint(protect) {
				t.Errorf("%v: estimate %+v, protect says %+v", c, protect, x.LayoutCost)
			}
		}
	}
	if _, _, err := Estimate(8, 5, store.Full, bytes, set, nil); err == nil {
		t.Error("layout full of 8 nodes that may lose 5")
	}
}
