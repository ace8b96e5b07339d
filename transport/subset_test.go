package transport_test

import (
	"errors"
	"testing"

	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
)

// subsetOf returns the ends of a group among the ranks of a larger one, which are in another order there.
func subsetOf(n int) (group []transport.Transport, all []*local.Endpoint) {
	all = local.New(2*n + 1)
	var ranks []int
	for i := range n {
		ranks = append(ranks, 2*(n-i))
	}
	for _, r := range ranks {
		group = append(group, transport.Subset(all[r], ranks))
	}
	return group, all
}

// TestSubset has a group among the ranks of a transport pass the tests of all transports.
func TestSubset(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
		group, _ := subsetOf(n)
		return group
	})
}

// TestSubsetAbort ends a group from without, by a rank that is in none, and leaves transfers as their callers made them.
func TestSubsetAbort(t *testing.T) {
	t.Parallel()
	group, all := subsetOf(2)
	q, x := group[0].NewQueue(), &transport.Transfer{Rank: 1, Receive: true, Parts: [][]byte{{0}}}
	q.Post(x)
	cause := errors.New("cause")
	all[1].Abort(cause)
	_, err := q.Wait(t.Context())
	if aborted, ok := errors.AsType[*transport.AbortError](err); !ok || aborted.Rank != -1 || !errors.Is(err, cause) {
		t.Errorf("%v: want the abort of a rank that is not in the group", err)
	}
	if x.Rank != 1 {
		t.Errorf("the transfer is with rank %d now: want 1, as it was posted", x.Rank)
	}
}

// TestSubsetOfSubset has a group within a group hear of the abort of a rank that is in neither, and of one in the outer.
func TestSubsetOfSubset(t *testing.T) {
	for rank, want := range []int{-1, 1, -1} {
		all := local.New(4)
		outer := transport.Subset(all[3], []int{3, 1, 2})
		inner := transport.Subset(outer, []int{0, 1})
		cause := errors.New("cause")
		all[rank].Abort(cause)
		_, err := inner.NewQueue().Wait(t.Context())
		if aborted, ok := errors.AsType[*transport.AbortError](err); !ok || aborted.Rank != want || !errors.Is(err, cause) {
			t.Errorf("rank %d: %v: want the abort of rank %d", rank, err, want)
		}
	}
}
