package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"volley/internal/race"
	"volley/transport"
	"volley/transport/faulty"
	"volley/transport/local"
)

// The suite is as good as the transports it refuses: each of these breaks one
// promise, and the named cases have to notice.
func TestBrokenTransports(t *testing.T) {
	for _, broken := range []struct {
		how     string
		wrap    func(transport.Transport) transport.Transport
		noticed []string
		racy    bool // broken in a way that the race detector sees by itself
	}{
		{
			how:     "says it is rank 0",
			wrap:    func(tr transport.Transport) transport.Transport { return &rankZero{tr} },
			noticed: []string{"every rank hears every other"},
		},
		{
			how:     "loses a message",
			wrap:    withFault(faulty.Drop(faulty.Nth(0))),
			noticed: []string{"every rank hears every other", "ping-pong", "many parts", "all pairs on three ports"},
		},
		{
			how:     "sends a message twice",
			wrap:    withFault(faulty.Duplicate(faulty.Nth(1))),
			noticed: []string{"order within a tag", "one buffer for all rounds"},
		},
		{
			how:     "flips a bit",
			wrap:    withFault(faulty.Flip(faulty.Every(), 0, 1<<20, 7)),
			noticed: []string{"parts of all sizes", "large messages both ways"},
		},
		{
			how:     "cuts long messages off",
			wrap:    withFault(faulty.Truncate(faulty.Every(), 1<<16)),
			noticed: []string{"parts of all sizes", "large messages both ways", "a sent buffer is free after Wait"},
		},
		{
			how:     "sends at most 1024 parts",
			wrap:    func(tr transport.Transport) transport.Transport { return &fewParts{tr} },
			noticed: []string{"many parts"},
		},
		{
			how:     "knows no ports",
			wrap:    func(tr transport.Transport) transport.Transport { return &noPorts{tr} },
			noticed: []string{"tags in any order", "all pairs on three ports", "send before receive"},
		},
		{
			how:     "overtakes within a tag",
			wrap:    func(tr transport.Transport) transport.Transport { return &overtaking{Transport: tr} },
			noticed: []string{"order within a tag"},
		},
		{
			how:     "holds one message at a time",
			wrap:    func(tr transport.Transport) transport.Transport { return &oneBuffer{Transport: tr} },
			noticed: []string{"messages held and released in any order"},
		},
		{
			how:     "lets a wait hold up everything else",
			wrap:    func(tr transport.Transport) transport.Transport { return &oneAtATime{Transport: tr} },
			noticed: []string{"several goroutines at once"},
		},
		{
			how:     "does not wait for Release",
			wrap:    func(tr transport.Transport) transport.Transport { return &impatient{tr} },
			noticed: []string{"a sent buffer is free after Wait"},
			racy:    true,
		},
		{
			how:     "has an error of its own for lengths",
			wrap:    onErrors(func(err error) error { return errors.New(err.Error()) }),
			noticed: []string{"wrong lengths", "abort ends waits under way", "ctx ends a wait"},
		},
		{
			how:     "sends to other ranks than asked",
			wrap:    func(tr transport.Transport) transport.Transport { return &modulo{tr} },
			noticed: []string{"wrong ranks"},
		},
		{
			how:     "does not look at ctx",
			wrap:    func(tr transport.Transport) transport.Transport { return &deaf{tr} },
			noticed: []string{"ctx ends a wait"},
		},
		{
			how: "keeps aborts to itself",
			wrap: func(tr transport.Transport) transport.Transport {
				return &muted{tr}
			},
			noticed: []string{"abort ends waits under way", "abort ends waits begun later", "only the first abort counts", "aborts at once"},
		},
		{
			how:     "lets the last abort count",
			wrap:    func(tr transport.Transport) transport.Transport { return &lastAbort{Transport: tr} },
			noticed: []string{"only the first abort counts"},
		},
		{
			how: "loses the cause of an abort",
			wrap: onErrors(func(err error) error {
				if aborted, ok := errors.AsType[*transport.AbortError](err); ok {
					return &transport.AbortError{Rank: aborted.Rank}
				}
				return err
			}),
			noticed: []string{"abort ends waits under way", "abort ends waits begun later", "only the first abort counts", "aborts at once"},
		},
		{
			how:     "forgets at Close what it has sent",
			wrap:    func(tr transport.Transport) transport.Transport { return &forgetful{Transport: tr} },
			noticed: []string{"what was sent arrives after Close"},
		},
		{
			how:     "fails at Close",
			wrap:    func(tr transport.Transport) transport.Transport { return &failingClose{tr} },
			noticed: []string{"ping-pong"},
		},
	} {
		t.Run(broken.how, func(t *testing.T) {
			if broken.racy && race.Enabled {
				t.Skip("the race detector would fail this test")
			}
			for _, name := range broken.noticed {
				c := caseNamed(t, name)
				var wrong []error
				for _, n := range []int{2, 3} {
					if wrong == nil {
						wrong = runGroup(t.Context(), c, group(n, broken.wrap), 300*time.Millisecond, 100*time.Millisecond)
					}
				}
				if wrong == nil {
					t.Errorf("%q did not notice", name)
				}
				for _, err := range wrong {
					t.Logf("%s: %v", name, err)
				}
			}
		})
	}
}

func caseNamed(t *testing.T, name string) Case {
	t.Helper()
	cases := Cases()
	i := slices.IndexFunc(cases, func(c Case) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no case is called %q", name)
	}
	return cases[i]
}

func group(n int, wrap func(transport.Transport) transport.Transport) []transport.Transport {
	var group []transport.Transport
	for _, e := range local.New(n) {
		group = append(group, wrap(e))
	}
	return group
}

func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range Cases() {
		if c.Name == "" || seen[c.Name] || c.MinRanks < 1 || c.Body == nil {
			t.Errorf("bad case: %q", c.Name)
		}
		seen[c.Name] = true
	}
}

// A rank that fails stops the others at once, and only it is heard.
func TestFailureStopsOthers(t *testing.T) {
	start := time.Now()
	c := Case{"", 1, func(ctx context.Context, tr transport.Transport) error {
		if tr.Rank() == 1 {
			return errors.New("no luck")
		}
		return endpoint{ctx, tr}.read(endpoint{ctx, tr}.await(message{src: 1, dst: tr.Rank()}))
	}}
	wrong := runGroup(t.Context(), c, group(3, same), time.Minute, time.Minute)
	if got := fmt.Sprint(wrong); got != "[rank 1: no luck]" || time.Since(start) > 30*time.Second {
		t.Errorf("got %s after %v", got, time.Since(start))
	}
}

func same(tr transport.Transport) transport.Transport { return tr }

// As where every rank is a process of its own.
func TestRankByRank(t *testing.T) {
	c := caseNamed(t, "ping-pong") // not in a goroutine, which could not end the test
	group := local.New(3)
	var ranks sync.WaitGroup
	for _, e := range group {
		ranks.Go(func() {
			if err := c.Run(t.Context(), e); err != nil {
				t.Errorf("rank %d: %v", e.Rank(), err)
			}
		})
	}
	ranks.Wait()
	if err := group[0].Send(1, never, nil).Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("rank 1 was not closed: %v", err)
	}
}

// A wait that does not end says so.
func TestHang(t *testing.T) {
	c := Case{"", 1, func(context.Context, transport.Transport) error { select {} }}
	err := c.run(t.Context(), local.New(1)[0], 20*time.Millisecond, 20*time.Millisecond)
	const want = "a wait goes on although its ctx has ended (still waiting after 20ms)"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestLeak(t *testing.T) {
	// What other tests have left behind is in both counts.
	before := runtime.NumGoroutine()
	if stacks := leak(before, time.Second); stacks != "" {
		t.Errorf("no goroutine was added, but got\n%s", stacks)
	}
	end := make(chan struct{})
	var idle sync.WaitGroup
	for range 100 { // more than may just be ending from tests before
		idle.Go(func() { <-end })
	}
	if stacks := leak(before, 50*time.Millisecond); !strings.Contains(stacks, "TestLeak") {
		t.Errorf("goroutines were added, but got %q", stacks)
	}
	close(end)
	idle.Wait()
}

// Transports that break one promise each.

func withFault(f faulty.Fault) func(transport.Transport) transport.Transport {
	return func(tr transport.Transport) transport.Transport { return faulty.New(tr, f) }
}

type (
	sendWait    func(context.Context) error
	receiveWait func(context.Context) (transport.Message, error)
)

func (w sendWait) Wait(ctx context.Context) error                         { return w(ctx) }
func (w receiveWait) Wait(ctx context.Context) (transport.Message, error) { return w(ctx) }

type rankZero struct{ transport.Transport }

func (*rankZero) Rank() int { return 0 }

type fewParts struct{ transport.Transport }

func (b *fewParts) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	return b.Transport.Send(dst, tag, parts[:min(len(parts), 1024)])
}

type noPorts struct{ transport.Transport }

func (b *noPorts) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	return b.Transport.Send(dst, transport.Tag{Round: tag.Round}, parts)
}

func (b *noPorts) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	return b.Transport.Receive(src, transport.Tag{Round: tag.Round}, lengths)
}

// overtaking swaps the first two receives.
type overtaking struct {
	transport.Transport
	first *receiveWait
	count int
}

func (b *overtaking) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	r := b.Transport.Receive(src, tag, lengths)
	b.count++
	switch b.count {
	case 1:
		b.first = new(receiveWait)
		*b.first = r.Wait
		return receiveWait(func(ctx context.Context) (transport.Message, error) { return (*b.first)(ctx) })
	case 2:
		wait := *b.first
		*b.first = r.Wait
		return receiveWait(wait)
	}
	return r
}

type oneBuffer struct {
	transport.Transport
	buffer []byte
}

func (b *oneBuffer) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	r := b.Transport.Receive(src, tag, lengths)
	return receiveWait(func(ctx context.Context) (transport.Message, error) {
		m, err := r.Wait(ctx)
		if err != nil {
			return m, err
		}
		b.buffer = append(b.buffer[:0], bytes.Join(m.Parts, nil)...)
		m.Release()
		rest, parts := b.buffer, make([][]byte, len(lengths))
		for i, n := range lengths {
			parts[i], rest = rest[:n], rest[n:]
		}
		return transport.Message{Parts: parts, Release: func() {}}, nil
	})
}

// oneAtATime does what a transport may that one goroutine at a time uses.
type oneAtATime struct {
	transport.Transport
	mu sync.Mutex
}

func (b *oneAtATime) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Transport.Send(dst, tag, parts)
}

func (b *oneAtATime) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.Transport.Receive(src, tag, lengths)
	return receiveWait(func(ctx context.Context) (transport.Message, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return r.Wait(ctx)
	})
}

type impatient struct{ transport.Transport }

func (b *impatient) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	b.Transport.Send(dst, tag, slices.Clone(parts))
	return sendWait(func(context.Context) error {
		time.Sleep(pause / 2)
		return nil
	})
}

func onErrors(change func(error) error) func(transport.Transport) transport.Transport {
	return func(tr transport.Transport) transport.Transport { return &otherErrors{tr, change} }
}

type otherErrors struct {
	transport.Transport
	change func(error) error
}

func (b *otherErrors) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	r := b.Transport.Receive(src, tag, lengths)
	return receiveWait(func(ctx context.Context) (transport.Message, error) {
		m, err := r.Wait(ctx)
		if err != nil {
			err = b.change(err)
		}
		return m, err
	})
}

type modulo struct{ transport.Transport }

func (b *modulo) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	return b.Transport.Send((dst+b.Size())%b.Size(), tag, parts)
}

type deaf struct{ transport.Transport }

func (b *deaf) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	r := b.Transport.Receive(src, tag, lengths)
	return receiveWait(func(context.Context) (transport.Message, error) { return r.Wait(context.Background()) })
}

type muted struct{ transport.Transport }

func (*muted) Abort(error) {}

// lastAbort tells a rank of its own abort although another came before.
type lastAbort struct {
	transport.Transport
	mu  sync.Mutex
	own error
}

func (b *lastAbort) Abort(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own = &transport.AbortError{Rank: b.Rank(), Cause: cause}
	b.Transport.Abort(cause)
}

func (b *lastAbort) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	s := b.Transport.Send(dst, tag, parts)
	return sendWait(func(ctx context.Context) error {
		err := s.Wait(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.own != nil {
			return b.own
		}
		return err
	})
}

// forgetful sends copies, a little later, unless it has been closed by then.
type forgetful struct {
	transport.Transport
	mu     sync.Mutex
	closed bool
}

func (b *forgetful) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	whole := make([][]byte, len(parts))
	for i, part := range parts {
		whole[i] = bytes.Clone(part)
	}
	time.AfterFunc(pause/2, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.closed {
			b.Transport.Send(dst, tag, whole)
		}
	})
	return sendWait(func(context.Context) error { return nil })
}

func (b *forgetful) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.Transport.Close()
}

type failingClose struct{ transport.Transport }

func (b *failingClose) Close() error {
	return errors.Join(b.Transport.Close(), errors.New("the door is stuck"))
}
