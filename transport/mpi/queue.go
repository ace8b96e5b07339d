//go:build mpi

package mpi

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"volley/transport"
)

// A queue is a [transport.Queue]. The engine's lock guards it.
type queue struct {
	e        *Endpoint
	finished []result
	underWay int
	pins     runtime.Pinner // of what is under way
	wake     chan struct{}  // ends a wait in which another goroutine polls
	gather   int            // see [transport.Gather]

	// Of the wait under way. A step of it is made once, as waits are many.
	step  func()
	ctx   context.Context
	since time.Time
	ends  result
	ended bool
	polls bool // this goroutine does
}

type result struct {
	transfer *transport.Transfer
	err      error
}

// NewQueue returns an empty queue.
func (e *Endpoint) NewQueue() transport.Queue {
	q := &queue{e: e, wake: make(chan struct{}, 1)}
	q.step = q.tryWait
	return q
}

// Post starts transfers: what may go at once, in one call of MPI's side.
func (q *queue) Post(transfers ...*transport.Transfer) {
	call(func() {
		for _, t := range transfers {
			q.underWay++
			q.e.start(q, t)
		}
		q.e.post()
	})
}

// Gather is as [transport.Gather] says.
func (q *queue) Gather(receives int) { q.gather = receives }

// Waits poll as soon as they begin and spin for a while, where waits have been as short of late.
// Then they poll ever more seldom, unless they are woken, so that a long one costs little and adds
// little to its own length: there may be many more ranks than cores.
const (
	spinHere   = 100 * time.Millisecond // where all ranks are on this machine: nothing but polls makes progress
	spinApart  = 5 * time.Millisecond   // a wait for some 64 KiB over 100 Mbit/s
	leastSleep = 20 * time.Microsecond
	mostPoll   = 20 * time.Millisecond // in C, until ctx is looked at
)

// mostPatience is after how many long waits a wait no longer spins, but for every so many.
const mostPatience = 8

// Wait waits as [transport.Queue] says. One goroutine of an endpoint polls, and wakes the others.
func (q *queue) Wait(ctx context.Context) (*transport.Transfer, error) {
	q.ctx = ctx
	for {
		if call(q.step); q.ended {
			return q.ends.transfer, q.ends.err
		}
		if q.polls {
			runtime.Gosched() // somebody may want the lock
			continue
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
}

// tryWait looks whether the wait is over, and polls for a while unless it is or another goroutine does.
func (q *queue) tryWait() {
	e := q.e
	if q.next(); q.ended {
		q.stop()
		return
	}
	if !e.waits[q] {
		q.since = time.Now()
		e.waits[q] = true
		engine.waits.Add(1)
	}
	if q.polls = e.poller == nil || e.poller == q; !q.polls {
		return
	}
	e.poller = q
	gather := q.gather
	if len(e.waits) > 1 || len(e.waiting)+len(e.uncleared) > 0 { // others wait, or messages for what comes
		gather = 0
	}
	e.wait(time.Since(q.since), gather)
	if q.next(); q.ended {
		q.stop()
	}
}

// next notes what ends the wait, if something does.
func (q *queue) next() {
	e := q.e
	q.ended = true
	switch {
	case e.abort != nil:
		q.ends = result{nil, e.abort}
	case len(q.finished) > 0:
		q.ends = q.finished[0]
		q.finished = slices.Delete(q.finished, 0, 1)
	case q.ctx.Err() != nil:
		e.broken = e.broken || q.underWay > 0 // messages may be left that nobody takes
		q.ends = result{nil, context.Cause(q.ctx)}
	default:
		q.ended = false
	}
}

// stop ends a wait, and has another one poll. One that was woken to poll may end at once, and wakes the next.
func (q *queue) stop() {
	e := q.e
	if !e.waits[q] {
		return
	}
	if time.Duration(e.lists.quiet) < e.mostSpin {
		e.patience = mostPatience
	} else {
		e.patience--
	}
	if delete(e.waits, q); q.ends.transfer == nil {
		e.waits[q] = false
	}
	engine.waits.Add(-1)
	if e.poller == q || e.poller == nil {
		e.poller = nil
		for waiting, waits := range e.waits {
			if waits {
				waiting.signal()
				break
			}
		}
	}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // it is awake
	}
}

// wait polls until so many receives are over, or somebody else wants MPI.
func (e *Endpoint) wait(waited time.Duration, receives int) {
	spin := time.Duration(0)
	if e.patience > 0 || e.patience%mostPatience == 0 {
		spin = e.mostSpin
	}
	engine.asleep.Store(waited+mostPoll > spin)
	err := e.pollFor(receives, waited, spin, e.mostSpin == spinApart, e.crowded, &engine.wanted)
	engine.asleep.Store(false)
	e.went(err)
}

// progress does what can be done at once.
func (e *Endpoint) progress() { e.went(e.poll()) }

// went does what follows a poll.
func (e *Endpoint) went(err error) {
	engine.progressed.Store(time.Now().UnixNano())
	if err != nil {
		e.fail(err)
	}
	e.checkLengths()
	e.clear()
	e.post()
}

// A transfer is one under way: its fragments are MPI messages. Parts of more than packBytes are fragments, and shorter
// ones packed together. To another machine no fragment has more than fragmentBytes. One that is over serves again.
type transfer struct {
	*transport.Transfer
	queue     *queue
	serial    int // in the order of posting
	mpiTag    int
	fragments []fragment
	posted    int   // of the fragments
	finished  int   // of those posted
	requests  []int // of a receive
	long      bool  // it needs a clear-to-send
	misfitTag int   // MPI's tag of a message of other lengths that came instead
	refuse    bool  // that one is to be taken
	err       error
}

// A fragment is memory, or parts that are packed into it.
type fragment struct {
	memory []byte
	parts  [][]byte
}

// packBytes is up to which length a part is copied where that saves a message, within a machine and to
// another one: a copy of so much takes less than a message.
const (
	packBytes      = 8 << 10
	packBytesApart = 32 << 10
)

// fragmentBytes bounds the messages to another machine. They are below the eager limit of MPI
// libraries, on TCP 64 KiB, above which a message waits for an answer of its receiver: where two
// ranks exchange long messages, that answer would queue behind what its sender has under way, and
// one direction would wait for the other. Within a machine whole messages are faster.
var fragmentBytes = 60 << 10

// Of a message of more than so many full fragments to another machine the others wait for a
// clear-to-send. The receiver sends it once it has posted the receive. Else a rank that is far ahead
// would take its receiver's link from those whose turn it is. A clear-to-send is not asked for, and
// goes ahead of what the receiver sends in that round: an answer would queue behind that. By measurement eight ranks on
// links of 100 Mbit/s exchange packets of 1 MiB in 165 to 170 ms so, and with whole messages in 173 to 177.
const eagerFragments = 2

// cut cuts a message into fragments, none of them empty unless it is the only one. Fragments have no more
// than so many bytes, and those that are packed are made of parts of up to pack bytes.
func (t *transfer) cut(limit, pack int) {
	for i := 0; i < len(t.Parts); {
		first, n := i, 0
		for ; i < len(t.Parts) && len(t.Parts[i]) <= pack && n+len(t.Parts[i]) <= limit; i++ {
			n += len(t.Parts[i])
		}
		if i > first+1 {
			p := fragment{t.queue.e.buffer(n), t.Parts[first:i]}
			rest := p.memory
			for _, part := range p.parts {
				if !t.Receive {
					copy(rest, part)
				}
				rest = rest[len(part):]
			}
			t.fragments = append(t.fragments, p)
			continue
		}
		i = first + 1
		for part := t.Parts[first]; len(part) > 0; part = part[min(len(part), limit):] {
			t.fragments = append(t.fragments, fragment{memory: part[:min(len(part), limit)]})
		}
	}
	t.fragments = slices.DeleteFunc(t.fragments, func(p fragment) bool { return len(p.memory) == 0 })
	if len(t.fragments) == 0 {
		t.fragments = append(t.fragments, fragment{})
	}
}

// buffer returns memory for a packed fragment, with whatever was in it.
func (e *Endpoint) buffer(n int) []byte {
	for last := len(e.buffers) - 1; last >= 0; last-- {
		b := e.buffers[last]
		if e.buffers = e.buffers[:last]; cap(b) >= n {
			return b[:n]
		}
	}
	return make([]byte, n)
}

func (e *Endpoint) start(q *queue, request *transport.Transfer) {
	t := new(transfer)
	if n := len(e.idleTransfers); n > 0 {
		t, e.idleTransfers = e.idleTransfers[n-1], e.idleTransfers[:n-1]
	}
	t.Transfer, t.queue = request, q
	switch {
	case t.Rank < 0 || t.Rank >= e.size || t.Rank == e.rank:
		t.err = fmt.Errorf("rank %d cannot %v: not another rank of the group of %d", e.rank, t.Transfer, e.size)
	case e.abort != nil: // nothing goes to those who have not heard of it
		t.err = e.abort
	case e.closed:
		t.err = fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed)
	default:
		t.mpiTag, t.err = e.tagOf(t.Tag, t.Parts)
	}
	if t.err != nil {
		t.end()
		return
	}
	e.serial++
	t.serial = e.serial
	if e.sameMachine[t.Rank] {
		t.cut(1<<30, packBytes)
	} else {
		t.cut(fragmentBytes, packBytesApart)
		t.long = t.Bytes() > eagerFragments*fragmentBytes
	}
	if t.Receive {
		t.post(len(t.fragments))
		if t.long {
			e.uncleared = append(e.uncleared, t)
			e.clear()
		}
		return
	}
	if e.waiting = append(e.waiting, t); len(e.waiting) == 1 && !t.long {
		e.waiting = e.waiting[:0]
		t.post(len(t.fragments))
		return
	}
	e.release()
}

// A destination is a rank and MPI's tag of messages to it.
type destination struct{ rank, mpiTag int }

// release posts what may go of the sends that are held, in the order of each stream.
func (e *Endpoint) release() {
	blocked := map[stream]bool{}
	e.waiting = slices.DeleteFunc(e.waiting, func(t *transfer) bool {
		key := stream{t.Rank, t.Tag}
		if blocked[key] {
			return false
		}
		if target := (destination{t.Rank, t.mpiTag}); t.long && e.clears[target] == 0 {
			blocked[key] = true
			t.post(eagerFragments)
			return false
		} else if t.long {
			if e.clears[target]--; e.clears[target] == 0 {
				delete(e.clears, target)
			}
		}
		t.post(len(t.fragments))
		return true
	})
}

// post has fragments posted, up to that one.
func (t *transfer) post(end int) {
	e := t.queue.e
	if !t.Receive {
		e.connected[t.Rank] = true
	}
	for ; t.posted < end; t.posted++ {
		p, tag := t.fragments[t.posted], t.mpiTag
		if t.posted < len(t.fragments)-1 {
			tag |= moreBit
		}
		if len(p.memory) > 0 {
			t.queue.pins.Pin(&p.memory[0])
		}
		index := e.add(t, t.posted, !t.Receive, t.Rank, tag, p.memory)
		if t.Receive {
			t.requests = append(t.requests, index)
		}
	}
}

// ended notes that a fragment is over.
func (t *transfer) ended(i, bytes, source int, err error) {
	e := t.queue.e
	t.finished++
	p := t.fragments[i]
	switch {
	case err != nil:
		t.fail(err)
	case !t.Receive:
	case bytes < 0:
		t.refuse = true
	case bytes != len(p.memory):
		t.wrong(bytes)
	default:
		e.connected[t.Rank] = true
		rest := p.memory
		for _, part := range p.parts {
			rest = rest[copy(part, rest):]
		}
	}
	if t.finished < len(t.fragments) {
		return
	}
	if t.refuse && t.err == nil {
		e.sendControl(t.Rank, controlMessage{Clear: t.misfitTag}) // it may be a long one
		e.refused = append(e.refused, t)
		return
	}
	t.end()
}

func (t *transfer) end() {
	q, e := t.queue, t.queue.e
	q.finished = append(q.finished, result{t.Transfer, t.err})
	if q.underWay--; q.underWay == 0 {
		q.pins.Unpin()
	}
	q.signal()
	if t.long || t.refuse { // lists may have it
		return
	}
	for _, p := range t.fragments {
		if p.parts != nil {
			e.buffers = append(e.buffers, p.memory)
		}
	}
	clear(t.fragments)
	*t = transfer{fragments: t.fragments[:0], requests: t.requests[:0]}
	e.idleTransfers = append(e.idleTransfers, t)
}

func (t *transfer) fail(err error) {
	t.err = fmt.Errorf("rank %d: %v, %v: %w", t.queue.e.rank, t.Transfer, t.Tag, err)
}

func (t *transfer) wrong(bytes int) {
	t.err = &transport.LengthError{Src: t.Rank, Tag: t.Tag, Got: []int{bytes}, Want: t.Lengths()}
}
