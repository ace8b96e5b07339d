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
