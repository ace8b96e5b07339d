package transport_test

import (
	"errors"
	"testing"

	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
)

// subsetOf returns the ends of a group among the ranks of a larger one, which are in another order there.
func subsetOf(n int) (group []transport.Transport) {
	all, ranks := local.New(2*n+1), []int(nil)
	for i := range n {
		ranks = append(ranks, 2*(n-i))
	}
	for _, r := range ranks {
		group = append(group, transport.Subset(all[r], ranks))
	}
	return group
}

// TestSubset has a group among the ranks of a transport pass the tests of all transports.
func TestSubset(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport { return subsetOf(n) })
}

// TestSubsetAbort has a group, and one within it, hear of the abort of a rank that is in it, in the outer one or in none, and
// leaves transfers as their callers made them.
func TestSubsetAbort(t *testing.T) {
	t.Parallel()
	for rank, want := range [][2]int{{-1, -1}, {1, 1}, {2, -1}} { // of the outer group, and of the inner one
		all := local.New(4)
		outer := transport.Subset(all[3], []int{3, 1, 2})
		inner := transport.Subset(outer, []int{0, 1})
		cause := errors.New("cause")
		x := &transport.Transfer{Rank: 1, Receive: true, Parts: [][]byte{{0}}}
		for i, group := range []transport.Transport{outer, inner} {
			q := group.NewQueue()
			q.Post(x)
			all[rank].Abort(cause)
			_, err := q.Wait(t.Context())
			if aborted, ok := errors.AsType[*transport.AbortError](err); !ok || aborted.Rank != want[i] || !errors.Is(err, cause) {
				t.Errorf("rank %d: %v: want the abort of rank %d", rank, err, want[i])
			}
		}
		if x.Rank != 1 {
			t.Errorf("the transfer is with rank %d now: want 1, as it was posted", x.Rank)
		}
	}
}
