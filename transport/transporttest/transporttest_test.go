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

	"volley/internal/faulty"
	"volley/internal/race"
	"volley/transport"
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
			noticed: []string{"every rank hears every other", "many parts", "all pairs on three ports"},
		},
		{
			how:     "sends a message twice",
			wrap:    withFault(faulty.Duplicate(faulty.Nth(1))),
			noticed: []string{"order within a tag"},
		},
		{
			how:     "flips a bit",
			wrap:    withFault(faulty.Flip(faulty.EverySend, 0, 1<<20, 7)),
			noticed: []string{"parts of all sizes", "large messages both ways"},
		},
		{
			how:     "cuts long messages off",
			wrap:    withFault(faulty.Truncate(faulty.EverySend, 1<<16)),
			noticed: []string{"parts of all sizes", "large messages both ways", "a sent buffer is free after Wait"},
		},
		{
			how: "sends at most 1024 parts",
			wrap: posting(func(_ transport.Transport, t *transport.Transfer) {
				if !t.Receive {
					t.Parts = t.Parts[:min(len(t.Parts), 1024)]
				}
			}),
			noticed: []string{"many parts"},
		},
		{
			how:     "knows no ports",
			wrap:    posting(func(_ transport.Transport, t *transport.Transfer) { t.Tag.Port = 0 }),
			noticed: []string{"tags in any order", "all pairs on three ports", "send before receive"},
		},
		{
			how:     "overtakes within a tag",
			wrap:    overtaking,
			noticed: []string{"order within a tag"},
		},
		{
			how:     "names what is over in the order of posting",
			wrap:    func(tr transport.Transport) transport.Transport { return &inOrder{tr} },
			noticed: []string{"messages of a queue one by one"},
		},
		{
			how:     "lets a wait hold up everything else",
			wrap:    oneAtATime,
			noticed: []string{"several goroutines at once"},
		},
		{
			how:     "does not wait until a message is sent",
			wrap:    func(tr transport.Transport) transport.Transport { return &tardy{Transport: tr} },
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
			wrap:    posting(func(tr transport.Transport, t *transport.Transfer) { t.Rank = (t.Rank + tr.Size()) % tr.Size() }),
			noticed: []string{"wrong ranks"},
		},
		{
			how:     "does not look at ctx",
			wrap:    deaf,
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
			wrap:    func(tr transport.Transport) transport.Transport { return &tardy{Transport: tr, copies: true} },
			noticed: []string{"what was sent arrives after Close"},
		},
		{
			how:     "fails at Close",
			wrap:    func(tr transport.Transport) transport.Transport { return &failingClose{tr} },
			noticed: []string{"every rank hears every other"},
		},
	} {
		t.Run(broken.how, func(t *testing.T) {
			if broken.racy && race.Enabled {
				t.Skip("the race detector would fail this test")
			}
			t.Parallel() // most wait until their time is over
			for _, name := range broken.noticed {
				c := caseNamed(t, name)
				var wrong []error
				for _, n := range []int{2, 3} {
					if len(wrong) == 0 {
						wrong = runGroup(t.Context(), c, group(n, broken.wrap), 300*time.Millisecond, 100*time.Millisecond)
					}
				}
				if len(wrong) == 0 {
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
		return endpoint{ctx, tr}.finish(endpoint{ctx, tr}.post(message{src: 1, dst: tr.Rank(), tag: never}))
	}}
	wrong := runGroup(t.Context(), c, group(3, same), time.Minute, time.Minute)
	if got := fmt.Sprint(wrong); got != "[rank 1: no luck]" || time.Since(start) > 30*time.Second {
		t.Errorf("got %s after %v", got, time.Since(start))
	}
}

func same(tr transport.Transport) transport.Transport { return tr }

// As where every rank is a process of its own.
func TestRankByRank(t *testing.T) {
	c := caseNamed(t, "send before receive") // not in a goroutine, which could not end the test
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
	if err := transport.Send(t.Context(), group[0], 1, never); !errors.Is(err, transport.ErrClosed) {
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

// changed is a transport whose queues have another Post or Wait.
type changed struct {
	transport.Transport
	post func(transport.Queue, ...*transport.Transfer)
	wait func(transport.Queue, context.Context) (*transport.Transfer, error)
}

type changedQueue struct {
	transport.Queue
	of *changed
}

func (c *changed) NewQueue() transport.Queue { return changedQueue{c.Transport.NewQueue(), c} }

func (q changedQueue) Post(transfers ...*transport.Transfer) {
	if q.of.post == nil {
		q.Queue.Post(transfers...)
		return
	}
	for _, t := range transfers {
		q.of.post(q.Queue, t)
	}
}

func (q changedQueue) Wait(ctx context.Context) (*transport.Transfer, error) {
	if q.of.wait == nil {
		return q.Queue.Wait(ctx)
	}
	return q.of.wait(q.Queue, ctx)
}

// posting changes each transfer that is posted.
func posting(change func(tr transport.Transport, t *transport.Transfer)) func(transport.Transport) transport.Transport {
	return func(tr transport.Transport) transport.Transport {
		return &changed{Transport: tr, post: func(q transport.Queue, transfers ...*transport.Transfer) {
			change(tr, transfers[0])
			q.Post(transfers...)
		}}
	}
}

type rankZero struct{ transport.Transport }

func (*rankZero) Rank() int { return 0 }

// overtaking swaps the first two receives of each tag.
func overtaking(tr transport.Transport) transport.Transport {
	held := map[transport.Tag]func(){}
	return &changed{Transport: tr, post: func(q transport.Queue, transfers ...*transport.Transfer) {
		t := transfers[0]
		first, ok := held[t.Tag]
		switch {
		case !t.Receive || ok && first == nil:
			q.Post(t)
		case ok:
			q.Post(t)
			first()
			held[t.Tag] = nil
		default:
			held[t.Tag] = func() { q.Post(t) }
		}
	}}
}

type inOrder struct{ transport.Transport }

type inOrderQueue struct {
	transport.Queue
	mu     sync.Mutex
	posted []*transport.Transfer
	over   map[*transport.Transfer]error
}

func (b *inOrder) NewQueue() transport.Queue {
	return &inOrderQueue{Queue: b.Transport.NewQueue(), over: map[*transport.Transfer]error{}}
}

func (q *inOrderQueue) Post(transfers ...*transport.Transfer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.posted = append(q.posted, transfers...)
	q.Queue.Post(transfers...)
}

func (q *inOrderQueue) first() (t *transport.Transfer, err error, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.posted) == 0 {
		return nil, nil, false
	}
	t = q.posted[0]
	if err, ok = q.over[t]; ok {
		q.posted = q.posted[1:]
	}
	return t, err, ok
}

func (q *inOrderQueue) Wait(ctx context.Context) (*transport.Transfer, error) {
	for {
		if t, err, ok := q.first(); ok {
			return t, err
		}
		t, err := q.Queue.Wait(ctx)
		if t == nil {
			return nil, err
		}
		q.over[t] = err
	}
}

// oneAtATime does what a transport may that one goroutine at a time uses.
func oneAtATime(tr transport.Transport) transport.Transport {
	var mu sync.Mutex
	return &changed{
		Transport: tr,
		post: func(q transport.Queue, transfers ...*transport.Transfer) {
			mu.Lock()
			defer mu.Unlock()
			q.Post(transfers...)
		},
		wait: func(q transport.Queue, ctx context.Context) (*transport.Transfer, error) {
			mu.Lock()
			defer mu.Unlock()
			return q.Wait(ctx)
		},
	}
}

// tardy says at once that a message is sent, and sends it later, unless it has been closed by
// then: a copy, or what the parts are by then.
type tardy struct {
	transport.Transport
	copies bool
	mu     sync.Mutex
	closed bool
}

type tardyQueue struct {
	transport.Queue
	of   *tardy
	over []*transport.Transfer
}

func (b *tardy) NewQueue() transport.Queue { return &tardyQueue{Queue: b.Transport.NewQueue(), of: b} }

func (q *tardyQueue) Post(transfers ...*transport.Transfer) {
	b := q.of
	for _, t := range transfers {
		if t.Receive {
			q.Queue.Post(t)
			continue
		}
		later := *t
		later.Parts = slices.Clone(t.Parts)
		for i, part := range later.Parts {
			if b.copies {
				later.Parts[i] = bytes.Clone(part)
			}
		}
		time.AfterFunc(pause/2, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if !b.closed {
				b.Transport.NewQueue().Post(&later)
			}
		})
		q.over = append(q.over, t)
	}
}

func (q *tardyQueue) Wait(ctx context.Context) (*transport.Transfer, error) {
	if len(q.over) > 0 {
		t := q.over[0]
		q.over = q.over[1:]
		return t, nil
	}
	return q.Queue.Wait(ctx)
}

func (b *tardy) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.Transport.Close()
}

func onErrors(change func(error) error) func(transport.Transport) transport.Transport {
	return func(tr transport.Transport) transport.Transport {
		return &changed{Transport: tr, wait: func(q transport.Queue, ctx context.Context) (*transport.Transfer, error) {
			t, err := q.Wait(ctx)
			if err != nil {
				err = change(err)
			}
			return t, err
		}}
	}
}

func deaf(tr transport.Transport) transport.Transport {
	return &changed{Transport: tr, wait: func(q transport.Queue, _ context.Context) (*transport.Transfer, error) {
		return q.Wait(context.Background())
	}}
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

func (b *lastAbort) NewQueue() transport.Queue {
	return onErrors(func(err error) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.own != nil {
			return b.own
		}
		return err
	})(b.Transport).NewQueue()
}

type failingClose struct{ transport.Transport }

func (b *failingClose) Close() error {
	return errors.Join(b.Transport.Close(), errors.New("the door is stuck"))
}
