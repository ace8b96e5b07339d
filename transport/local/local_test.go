package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
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
		group := local.New(2)
		sending, receiving := send(group[0], 1, c.sent...), receive(group[1], 0, c.asked...)
		if err := receiving(ended()); err == nil || err.Error() != c.want {
			t.Errorf("got error %v, want %s", err, c.want)
		}
		if err := sending(ended()); err != nil {
			t.Errorf("the sender got %v", err)
		}
		for _, part := range c.asked {
			if bytes.Count(part, []byte{0}) != len(part) {
				t.Error("a message of other lengths was written")
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

// TestRun checks that failures are told once, and that ranks that only heard of one do not repeat it.
func TestRun(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for want, run := range map[string]func(ctx context.Context, tr transport.Transport) error{
		"<nil>": func(ctx context.Context, tr transport.Transport) error {
			if tr.Rank()%2 == 0 {
				return transport.Send(ctx, tr, tr.Rank()+1, tag)
			}
			return transport.Receive(ctx, tr, tr.Rank()-1, tag)
		},
		"disk full": func(ctx context.Context, tr transport.Transport) error {
			if tr.Rank() == 2 {
				return full
			}
			return transport.Receive(ctx, tr, 2, tag, []byte{0})
		},
		"disk full\nsecond": func(_ context.Context, tr transport.Transport) error {
			return []error{full, nil, errors.New("second"), errors.New("disk full")}[tr.Rank()]
		},
	} {
		if err := local.Run(t.Context(), 4, run); fmt.Sprint(err) != want || err != nil && !errors.Is(err, full) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
