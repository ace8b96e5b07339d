package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/transport"
)

// alone returns rank 0 of a run in which nothing is dialled.
func alone(n int) *Endpoint {
	e := (&Listener{joined: make(chan struct{})}).Join(0, slices.Repeat([]string{"a:1"}, n), "test")
	for _, p := range e.peers[1:] {
		p.link = new(conn) // nothing is dialled
	}
	return e
}

// sent takes what a rank would send to a peer, as kinds and bytes.
func sent(p *peer) (frames []string) {
	for {
		var b batch
		p.collect(&b)
		if len(b.frames) == 0 {
			return frames
		}
		for _, f := range b.frames {
			frames = append(frames, fmt.Sprintf("%d:%d", f.kind, f.size))
		}
	}
}

// take has a rank take a frame of a peer.
func take(p *peer, f frame, data string) error {
	f.size = len(data)
	return p.take(&conn{reader: strings.NewReader(data)}, f)
}

// TestClearBefore posts a long receive before anything has come, and a long send after its clear-to-send: neither
// waits for the other rank.
func TestClearBefore(t *testing.T) {
	t.Parallel()
	e := alone(2)
	p, q, message := e.peers[1], e.NewQueue(), [][]byte{make([]byte, frameBytes+headBytes+1)}
	q.Post(&transport.Transfer{Rank: 1, Receive: true, Parts: message})
	if got, want := sent(p), []string{fmt.Sprintf("%d:0", clearFrame)}; !slices.Equal(got, want) {
		t.Errorf("a receive sends %v, want %v", got, want)
	}
	head, all := fmt.Sprintf("%d:%d", headFrame, headBytes), uint64(len(message[0]))
	for _, c := range []struct {
		number uint32 // of the clear-to-send
		size   uint64
		want   []string
	}{
		{0, all, []string{head, fmt.Sprintf("%d:%d", restFrame, frameBytes), fmt.Sprintf("%d:1", restFrame)}},
		{1, all - 1, []string{head}}, // the receiver wants another length
		{3, all, []string{head}},     // this is of the next message
	} {
		must(t, take(p, frame{kind: clearFrame, c: c.number, n: c.size}, ""))
		q.Post(&transport.Transfer{Rank: 1, Parts: message})
		if got := sent(p); !slices.Equal(got, c.want) {
			t.Errorf("clear-to-send of message %d and %d bytes: sent %v, want %v", c.number, c.size, got, c.want)
		}
	}
	p.line(transport.Tag{}).sends = math.MaxUint32 // the next but one is message 0 again
	must(t, take(p, frame{kind: clearFrame, c: 0, n: all}, ""))
	q.Post(&transport.Transfer{Rank: 1, Parts: [][]byte{nil}}, &transport.Transfer{Rank: 1, Parts: message})
	if got, rest := sent(p), fmt.Sprintf("%d:1", restFrame); len(got) != 4 || got[3] != rest {
		t.Errorf("sent %v, want %s at the end", got, rest)
	}
}

// TestClear posts receives of several rounds: the senders of long ones are told clear-to-send at once, and once only.
func TestClear(t *testing.T) {
	t.Parallel()
	e := alone(5)
	q := e.NewQueue()
	sizes := []int{4 * headBytes, headBytes + 1, headBytes, 0}
	for i, size := range sizes {
		q.Post(&transport.Transfer{Rank: 1 + i, Receive: true, Tag: transport.Tag{Round: i}, Parts: [][]byte{make([]byte, size)}})
	}
	for _, k := range []kind{0, headFrame, restFrame} {
		for i, size := range sizes {
			p, n := e.peers[1+i], min(size, headBytes)
			if k == restFrame {
				n = min(size-n, headBytes)
			}
			if k == 0 || k == restFrame && n == 0 {
				continue
			}
			must(t, take(p, frame{kind: k, a: uint32(i), n: uint64(size)}, strings.Repeat("x", n)))
		}
		for i, want := range []int{1, 1, 0, 0} {
			cleared := 0
			for _, f := range e.peers[1+i].urgent {
				if f.kind == clearFrame {
					cleared++
				}
			}
			if cleared != want {
				t.Errorf("after frames of kind %d: %d bytes: %d clear-to-sends, want %d", k, sizes[i], cleared, want)
			}
		}
	}
}

// TestReceiverCloses closes a rank to which a long message is under way: the send ends.
func TestReceiverCloses(t *testing.T) {
	t.Parallel()
	run, proxies := newProxied(t, 2, time.Millisecond, Patience{})
	defer proxies[0].close()
	defer proxies[1].close()
	defer run[0].(proxied).member.Close()
	run[1].NewQueue().Post(&transport.Transfer{Rank: 0, Receive: true, Parts: [][]byte{make([]byte, 64<<20)}})
	q := run[0].NewQueue()
	q.Post(&transport.Transfer{Rank: 1, Parts: [][]byte{make([]byte, 64<<20)}})
	for e, begun := run[0].(proxied).Endpoint, false; !begun; {
		e.mu.Lock()
		begun = len(e.peers[1].rests) > 0
		e.mu.Unlock()
	}
	run[1].(proxied).member.Close()
	if _, err := q.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the send ended with %v", err)
	}
}

// TestLeftInFlight has a peer close while the head of a message to it is being written: the send ends after that.
func TestLeftInFlight(t *testing.T) {
	t.Parallel()
	e := alone(2)
	p, q := e.peers[1], e.NewQueue()
	in, out := io.Pipe()
	c := &conn{writer: out, ended: make(chan struct{})}
	p.link = nil
	p.attach(c)
	q.Post(&transport.Transfer{Rank: 1, Parts: [][]byte{make([]byte, 2*headBytes)}})
	in.Read(make([]byte, 1))
	must(t, take(p, frame{kind: byeFrame}, ""))
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if over, err := q.Wait(now); over != nil {
		t.Fatalf("a send is over while its parts are read: %v", err)
	}
	in.Close()
	if _, err := q.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the send ended with %v", err)
	}
}

// TestAnswerBeforeEnd has a rank end in the moment in which a gathering is over: what is over counts.
func TestAnswerBeforeEnd(t *testing.T) {
	t.Parallel()
	for range 20 {
		l, asked := &Listener{changed: make(chan struct{})}, false
		ctx, cancel := context.WithCancel(t.Context())
		err := l.await(ctx, func() bool {
			if asked {
				return true
			}
			asked = true
			close(l.changed)
			cancel()
			return false
		})
		must(t, err)
	}
}
