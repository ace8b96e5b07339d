package waits

import (
	"context"
	"errors"
	"slices"
	"testing"

	"volley/transport"
)

// TestQueue finishes transfers out of order, twice, and before they begin.
func TestQueue(t *testing.T) {
	var posted []*transport.Transfer
	q := New(nil, nil, func(_ *Queue, t *transport.Transfer) { posted = append(posted, t) }).NewQueue()
	first, second, never := &transport.Transfer{Rank: 1}, &transport.Transfer{Rank: 2}, &transport.Transfer{Rank: 3}
	q.Post(first, second)
	if !slices.Equal(posted, []*transport.Transfer{first, second}) {
		t.Errorf("the transport starts %v", posted)
	}
	wrong := errors.New("wrong")
	q.Finish(never, wrong)
	q.Finish(second, wrong)
	q.Finish(second, nil)
	q.Finish(first, nil)
	for _, want := range []struct {
		transfer *transport.Transfer
		err      error
	}{{second, wrong}, {first, nil}} {
		if got, err := q.Wait(t.Context()); got != want.transfer || err != want.err {
			t.Errorf("got %v, %v, want %v, %v", got, err, want.transfer, want.err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(wrong)
	if got, err := q.Wait(ended); got != nil || err != wrong {
		t.Errorf("with nothing under way: %v, %v", got, err)
	}
}

// TestOldest has two queues wait: the rank waits for the oldest transfer of the one that began first, also when an
// abort has ended that.
func TestOldest(t *testing.T) {
	aborted, cause := make(chan struct{}), errors.New("stopped")
	all := New(aborted, func() error { return cause }, func(*Queue, *transport.Transfer) {})
	if rank := all.Oldest(); rank != -1 {
		t.Errorf("nobody waits, and the rank waits for %d", rank)
	}
	idle := all.NewQueue() // one with nothing under way waits for nobody
	waits := make(chan error)
	wait := func(q *Queue, n int) {
		go func() {
			_, err := q.Wait(context.Background())
			waits <- err
		}()
		for seen := 0; seen < n; {
			all.mu.Lock()
			seen = len(all.queues)
			all.mu.Unlock()
		}
	}
	wait(idle, 1)
	if rank := all.Oldest(); rank != -1 {
		t.Errorf("nothing is under way, and the rank waits for %d", rank)
	}
	for i, ranks := range [][]int{{5, 6}, {7}} {
		q := all.NewQueue()
		for _, r := range ranks {
			q.Post(&transport.Transfer{Rank: r})
		}
		wait(q, i+2)
	}
	if rank := all.Oldest(); rank != 5 {
		t.Errorf("the rank waits for %d, want 5", rank)
	}
	close(aborted)
	for range 3 {
		if err := <-waits; err != cause {
			t.Errorf("a wait ended with %v", err)
		}
	}
	if rank := all.Oldest(); rank != 5 {
		t.Errorf("the rank has given up to wait for 5, and says %d", rank)
	}
}
