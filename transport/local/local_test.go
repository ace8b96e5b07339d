package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

func receive(t *testing.T, r transport.Receiving) transport.Message {
	t.Helper()
	m, err := r.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestByReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := local.New(2)
		part := []byte("seven")
		sending := group[0].Send(1, tag, [][]byte{part})
		m := receive(t, group[1].Receive(0, tag, []int{5}))
		if &m.Parts[0][0] != &part[0] {
			t.Error("the receiver got a copy")
		}
		released := false
		go func() {
			time.Sleep(time.Hour)
			released = true
			m.Release()
		}()
		if err := sending.Wait(t.Context()); err != nil || !released {
			t.Errorf("Wait returned %v; released: %v", err, released)
		}
	})
}

func TestReleasedTwice(t *testing.T) {
	group := local.New(2)
	group[0].Send(1, tag, nil)
	m := receive(t, group[1].Receive(0, tag, nil))
	m.Release()
	defer func() {
		const want = "local: message from rank 0 to rank 1, round 3 port 0, released twice"
		if got := recover(); got != want {
			t.Errorf("got panic %v, want %q", got, want)
		}
	}()
	m.Release()
}

func TestLengthError(t *testing.T) {
	for _, c := range []struct {
		sent  [][]byte
		asked []int
		want  string
	}{
		{[][]byte{{1, 2}, {3}}, []int{1, 2}, "message from rank 0, round 3 port 0: part 0: got 2 bytes, want 1"},
		{[][]byte{{1, 2}, {3}}, []int{3}, "message from rank 0, round 3 port 0: parts: got 2 (3 bytes), want 1 (3 bytes)"},
	} {
		for _, receiveFirst := range []bool{false, true} {
			group := local.New(2)
			var receiving transport.Receiving
			if receiveFirst {
				receiving = group[1].Receive(0, tag, c.asked)
			}
			sending := group[0].Send(1, tag, c.sent)
			if !receiveFirst {
				receiving = group[1].Receive(0, tag, c.asked)
			}
			if _, err := receiving.Wait(ended()); err == nil || err.Error() != c.want {
				t.Errorf("receive before send: %v: got error %v, want %s", receiveFirst, err, c.want)
			}
			if err := sending.Wait(ended()); err != nil {
				t.Errorf("receive before send: %v: the sender was not released: %v", receiveFirst, err)
			}
		}
	}
}

func TestReceiverGivesUp(t *testing.T) {
	group := local.New(2)
	_, err := group[1].Receive(0, tag, []int{5}).Wait(ended())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	first := group[0].Send(1, tag, [][]byte{[]byte("first")})
	group[0].Send(1, tag, [][]byte{[]byte("other")})
	if err := first.Wait(ended()); err != nil {
		t.Errorf("the sender was not released: %v", err)
	}
	if got := receive(t, group[1].Receive(0, tag, []int{5})).Parts[0]; string(got) != "other" {
		t.Errorf("the next receive got %q, want the next message", got)
	}
}

func TestSenderGivesUp(t *testing.T) {
	group := local.New(2)
	if err := group[0].Send(1, tag, [][]byte{[]byte("first")}).Wait(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	m := receive(t, group[1].Receive(0, tag, []int{5}))
	if got := m.Parts[0]; string(got) != "first" {
		t.Errorf("got %q", got)
	}
	m.Release()
}

// When the message and the end of ctx come at once, the receiver gets one of
// them and the sender is released by either.
func TestMessageOrError(t *testing.T) {
	for range 1000 {
		group := local.New(2)
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		received := make(chan error)
		go func() {
			m, err := group[1].Receive(0, tag, nil).Wait(ctx)
			if err == nil {
				m.Release()
			}
			received <- err
		}()
		if err := group[0].Send(1, tag, nil).Wait(t.Context()); err != nil {
			t.Errorf("the sender got %v", err)
		}
		if err := <-received; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestAbortOfSeveral(t *testing.T) {
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
			_, err := e.Receive((r+1)%len(group), tag, nil).Wait(t.Context())
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

func TestAbortAfterArrival(t *testing.T) {
	group := local.New(2)
	sending := group[0].Send(1, tag, nil)
	m := receive(t, group[1].Receive(0, tag, nil))
	group[1].Abort(errors.New("no more"))
	m.Release()
	if err := sending.Wait(t.Context()); err == nil || err.Error() != "rank 1 stopped: no more" {
		t.Errorf("got error %v", err)
	}
}

func TestClose(t *testing.T) {
	group := local.New(3)
	fromClosed := group[0].Send(1, tag, nil)
	held := group[1].Send(0, tag, nil)
	m := receive(t, group[0].Receive(1, tag, nil))
	pending := group[2].Send(0, tag, nil)
	asked := group[0].Receive(2, transport.Tag{}, nil)
	for range 2 {
		if err := group[0].Close(); err != nil {
			t.Error(err)
		}
	}
	receive(t, group[1].Receive(0, tag, nil)).Release()
	m.Release()
	for _, sending := range []transport.Sending{fromClosed, held} {
		if err := sending.Wait(ended()); err != nil {
			t.Errorf("send under way when rank 0 closed: %v", err)
		}
	}
	_, askedErr := asked.Wait(ended())
	for what, err := range map[string]error{
		"send not yet received": pending.Wait(ended()),
		"send after Close":      group[2].Send(0, tag, nil).Wait(ended()),
		"receive":               askedErr,
	} {
		if !errors.Is(err, transport.ErrClosed) || !strings.Contains(err.Error(), "rank 0") {
			t.Errorf("%s: got error %v", what, err)
		}
	}
}

// A barrier of 2,000 ranks: after round i a rank has heard of 2^(i+1) others.
func TestManyRanks(t *testing.T) {
	const n = 2000
	var ranks sync.WaitGroup
	for r, e := range local.New(n) {
		ranks.Go(func() {
			heard := []byte{1}
			for round, distance := 0, 1; distance < n; round, distance = round+1, 2*distance {
				tag := transport.Tag{Round: round}
				receiving := e.Receive((r-distance+n)%n, tag, []int{1})
				sending := e.Send((r+distance)%n, tag, [][]byte{heard})
				m, err := receiving.Wait(t.Context())
				if err != nil {
					t.Errorf("rank %d: %v", r, err)
					e.Abort(err)
					return
				}
				sum := m.Parts[0][0] + 1
				m.Release()
				if err := sending.Wait(t.Context()); err != nil {
					t.Errorf("rank %d: %v", r, err)
					return
				}
				heard[0] = sum // the receiver is through with it
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
	ctx, parts, lengths := t.Context(), [][]byte{{1}}, []int{1}
	allocations := testing.AllocsPerRun(1000, func() {
		sending := group[0].Send(1, tag, parts)
		m, err := group[1].Receive(0, tag, lengths).Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m.Release()
		if err := sending.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if allocations >= 1 && !race.Enabled {
		t.Errorf("%v allocations per message", allocations)
	}
}

// One op is one message around a ring in which all ranks send at once.
func BenchmarkSendReceive(b *testing.B) {
	for _, n := range []int{2, 1000} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			group := local.New(n)
			parts, lengths := [][]byte{make([]byte, 1<<20)}, []int{1 << 20}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var ranks sync.WaitGroup
			b.ResetTimer()
			for r, e := range group {
				ranks.Go(func() {
					for round := range (b.N + n - 1) / n {
						tag := transport.Tag{Round: round}
						receiving := e.Receive((r+n-1)%n, tag, lengths)
						sending := e.Send((r+1)%n, tag, parts)
						m, err := receiving.Wait(ctx)
						if err != nil {
							b.Error(err)
							return
						}
						m.Release()
						if err := sending.Wait(ctx); err != nil {
							b.Error(err)
							return
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
		sending := group[0].Send(1, tag, [][]byte{[]byte("hello, "), []byte("rank 1")})
		if err := sending.Wait(ctx); err != nil {
			group[0].Abort(err)
		}
	})

	m, err := group[1].Receive(0, tag, []int{7, 6}).Wait(ctx)
	if err != nil {
		group[1].Abort(err)
		return
	}
	fmt.Printf("%s%s\n", m.Parts[0], m.Parts[1])
	m.Release()
	sender.Wait()
	// Output: hello, rank 1
}
