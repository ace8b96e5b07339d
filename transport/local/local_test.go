package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"volley/internal/race"
	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
)

var tag = transport.Tag{Round: 3}

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
		group := make([]transport.Transport, n)
		for r, e := range local.New(n) {
			group[r] = e
		}
		return group
	})
}

// What follows is more than every transport promises.

// ended is a context for waits that must not need one.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// post posts a transfer in a queue of its own, and returns the wait for it.
func post(e *local.Endpoint, t transport.Transfer) func(context.Context) error {
	q := e.NewQueue()
	q.Post(&t)
	return func(ctx context.Context) error {
		_, err := q.Wait(ctx)
		return err
	}
}

func send(e *local.Endpoint, dst int, parts ...[]byte) func(context.Context) error {
	return post(e, transport.Transfer{Rank: dst, Tag: tag, Parts: parts})
}

func receive(e *local.Endpoint, src int, parts ...[]byte) func(context.Context) error {
	return post(e, transport.Transfer{Rank: src, Tag: tag, Parts: parts, Receive: true})
}

func TestLengthError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent, asked [][]byte
		want        string
	}{
		{[][]byte{{1, 2}, {3}}, [][]byte{{0}, {0, 0}}, "message from rank 0, round 3 port 0: part 0: got 2 bytes, want 1"},
		{[][]byte{{1, 2}, {3}}, [][]byte{{0, 0, 0}}, "message from rank 0, round 3 port 0: parts: got 2 (3 bytes), want 1 (3 bytes)"},
	} {
		for _, receiveFirst := range []bool{false, true} {
			group := local.New(2)
			var receiving func(context.Context) error
			if receiveFirst {
				receiving = receive(group[1], 0, c.asked...)
			}
			sending := send(group[0], 1, c.sent...)
			if !receiveFirst {
				receiving = receive(group[1], 0, c.asked...)
			}
			if err := receiving(ended()); err == nil || err.Error() != c.want {
				t.Errorf("receive before send: %v: got error %v, want %s", receiveFirst, err, c.want)
			}
			if err := sending(ended()); err != nil {
				t.Errorf("receive before send: %v: the sender got %v", receiveFirst, err)
			}
			for _, part := range c.asked {
				if bytes.Count(part, []byte{0}) != len(part) {
					t.Errorf("receive before send: %v: a message of other lengths was written", receiveFirst)
				}
			}
		}
	}
}

// TestReceiverGivesUp waits in vain: the receive stays under way, and another wait ends it.
func TestReceiverGivesUp(t *testing.T) {
	t.Parallel()
	group := local.New(2)
	first, other := make([]byte, 5), make([]byte, 5)
	wait := receive(group[1], 0, first)
	if err := wait(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	if err := send(group[0], 1, []byte("first"))(ended()); err != nil {
		t.Errorf("the sender got %v", err)
	}
	send(group[0], 1, []byte("other"))
	if err := receive(group[1], 0, other)(t.Context()); err != nil || string(other) != "other" {
		t.Errorf("the next receive got %q, want the next message; error %v", other, err)
	}
	if err := wait(ended()); err != nil || string(first) != "first" {
		t.Errorf("the second wait got %q, error %v", first, err)
	}
}

func TestAbortOfSeveral(t *testing.T) {
	t.Parallel()
	for range 100 {
		group := local.New(8)
		causes := make([]error, len(group))
		var aborts sync.WaitGroup
		for r, e := range group {
			causes[r] = fmt.Errorf("cause %d", r)
			aborts.Go(func() { e.Abort(causes[r]) })
		}
		aborts.Wait()
		var first *transport.AbortError
		for r, e := range group {
			err := receive(e, (r+1)%len(group))(t.Context())
			aborted, ok := errors.AsType[*transport.AbortError](err)
			if !ok || !errors.Is(err, causes[aborted.Rank]) {
				t.Fatalf("rank %d: got error %v", r, err)
			}
			if first == nil {
				first = aborted
			}
			if aborted.Rank != first.Rank {
				t.Fatalf("rank %d counts rank %d as the first, rank 0 counts rank %d", r, aborted.Rank, first.Rank)
			}
		}
	}
}

// TestAbortThenClose has a rank close after an abort: who sends to it hears of the abort, however far the abort has
// come.
func TestAbortThenClose(t *testing.T) {
	t.Parallel()
	for range 5 {
		group := local.New(10_000)
		first, last := group[1], group[len(group)-1]
		waits := receive(first, 0)
		go group[0].Abort(errors.New("full"))
		if err := waits(t.Context()); !errors.As(err, new(*transport.AbortError)) {
			t.Error(err)
		}
		first.Close()
		if err := send(last, 1)(t.Context()); !errors.As(err, new(*transport.AbortError)) {
			t.Error(err)
		}
	}
}

func TestAbortAfterArrival(t *testing.T) {
	t.Parallel()
	group := local.New(2)
	sending := send(group[0], 1)
	if err := receive(group[1], 0)(t.Context()); err != nil {
		t.Fatal(err)
	}
	group[1].Abort(errors.New("no more"))
	if err := sending(t.Context()); err == nil || err.Error() != "rank 1 stopped: no more" {
		t.Errorf("got error %v", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	group := local.New(3)
	fromClosed := send(group[0], 1)
	pending := send(group[2], 0)
	asked := receive(group[0], 1)
	for range 2 {
		if err := group[0].Close(); err != nil {
			t.Error(err)
		}
	}
	if err := receive(group[1], 0)(ended()); err != nil {
		t.Errorf("receive of what a closed rank has sent: %v", err)
	}
	if err := fromClosed(ended()); err != nil {
		t.Errorf("send under way when rank 0 closed: %v", err)
	}
	for what, err := range map[string]error{
		"send not yet received": pending(ended()),
		"send after Close":      send(group[2], 0)(ended()),
		"receive":               asked(ended()),
	} {
		if !errors.Is(err, transport.ErrClosed) || !strings.Contains(err.Error(), "rank 0") {
			t.Errorf("%s: got error %v", what, err)
		}
	}
}

// A barrier of 2,000 ranks: after round i a rank has heard of 2^(i+1) others.
func TestManyRanks(t *testing.T) {
	t.Parallel()
	const n = 2000
	var ranks sync.WaitGroup
	for r, e := range local.New(n) {
		ranks.Go(func() {
			heard, theirs, q := []byte{1}, []byte{0}, e.NewQueue()
			for round, distance := 0, 1; distance < n; round, distance = round+1, 2*distance {
				tag := transport.Tag{Round: round}
				q.Post(&transport.Transfer{Rank: (r - distance + n) % n, Tag: tag, Parts: [][]byte{theirs}, Receive: true},
					&transport.Transfer{Rank: (r + distance) % n, Tag: tag, Parts: [][]byte{heard}})
				for range 2 {
					if _, err := q.Wait(t.Context()); err != nil {
						t.Errorf("rank %d: %v", r, err)
						e.Abort(err)
						return
					}
				}
				heard[0] = theirs[0] + 1
			}
			if heard[0] != 12 {
				t.Errorf("rank %d counts %d rounds, want 11", r, heard[0]-1)
			}
		})
	}
	ranks.Wait()
}

func TestAllocations(t *testing.T) {
	group := local.New(2)
	ctx, there, here := t.Context(), group[0].NewQueue(), group[1].NewQueue()
	out := &transport.Transfer{Rank: 1, Tag: tag, Parts: [][]byte{{1}}}
	in := &transport.Transfer{Rank: 0, Tag: tag, Parts: [][]byte{{0}}, Receive: true}
	allocations := testing.AllocsPerRun(1000, func() {
		there.Post(out)
		here.Post(in)
		for _, q := range []transport.Queue{here, there} {
			if _, err := q.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocations >= 1 && !race.Enabled {
		t.Errorf("%v allocations per message", allocations)
	}
}

// One op is one message around a ring in which all ranks send at once.
func BenchmarkRing(b *testing.B) {
	for _, n := range []int{2, 1000} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			group := local.New(n)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var ranks sync.WaitGroup
			b.ResetTimer()
			for r, e := range group {
				ranks.Go(func() {
					q := e.NewQueue()
					in := &transport.Transfer{Rank: (r + n - 1) % n, Parts: [][]byte{make([]byte, 1<<20)}, Receive: true}
					out := &transport.Transfer{Rank: (r + 1) % n, Parts: [][]byte{make([]byte, 1<<20)}}
					for round := range (b.N + n - 1) / n {
						in.Tag.Round, out.Tag.Round = round, round
						q.Post(in, out)
						for range 2 {
							if _, err := q.Wait(ctx); err != nil {
								b.Error(err)
								return
							}
						}
					}
				})
			}
			ranks.Wait()
		})
	}
}

func Example() {
	group := local.New(2)
	ctx := context.Background()
	tag := transport.Tag{Round: 0, Port: 0}

	var sender sync.WaitGroup
	sender.Go(func() {
		if err := transport.Send(ctx, group[0], 1, tag, []byte("hello, "), []byte("rank 1")); err != nil {
			group[0].Abort(err)
		}
	})

	first, second := make([]byte, 7), make([]byte, 6)
	if err := transport.Receive(ctx, group[1], 0, tag, first, second); err != nil {
		group[1].Abort(err)
		return
	}
	fmt.Printf("%s%s\n", first, second)
	sender.Wait()
	// Output: hello, rank 1
}
