//go:build mpi

package mpi

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"volley/transport"
)

// An Endpoint is this process's rank of a group. Any number of goroutines may use it at
// once.
type Endpoint struct {
	*communicator
	lengthBits int // of a tag

	// What follows is guarded by the engine's lock.
	posted    map[stream][]*receiving // receives, oldest first
	sends     []*sending
	clears    map[destination]int // clear-to-sends that came before the sends
	connected map[int]bool        // ranks that were sent or have sent something
	cleared   []*receiving        // long messages whose senders were told clear-to-send, and that have not come
	uncleared []*receiving        // those whose senders were not, oldest first
	checked   time.Time           // when messages of other lengths were looked for

	controlSends   []*request
	controlReceive *request // posted for the next control message
	controlBuffer  []byte   // of controlReceive
	answers        map[int]chan answer
	questions      int // so far: the number of one is its place in answers

	waits  map[*wait]bool
	abort  *transport.AbortError
	closed bool
	broken bool // a wait was given up: messages may be left that nobody takes

	buffers bufferPool
}

var (
	_ transport.Transport = (*Endpoint)(nil)
	_ transport.Inquirer  = (*Endpoint)(nil)
)

// controlTag is the tag of control messages. The others have one more than round·ports +
// port, and then bits that depend on the length of the message: a message of another length
// than was asked for is never put into memory that is too short.
const controlTag = 0

// mostLengthBits is how many they are if the library has room; ports and leastRounds go first.
const (
	mostLengthBits = 10
	ports          = 64
	leastRounds    = 1 << 14
)

// lengthHash depends on a length.
func lengthHash(n, bits int) int { return int(uint64(n) * 0x9e3779b97f4a7c15 >> (64 - bits)) }

func newEndpoint(handle *int) (e *Endpoint, err error) {
	call(func() {
		var g *communicator
		if g, err = duplicate(handle); err != nil {
			return
		}
		e = &Endpoint{
			communicator:  g,
			lengthBits:    max(1, min(mostLengthBits, bits.Len(uint(g.mostTag))-bits.Len(ports*leastRounds))),
			posted:        map[stream][]*receiving{},
			clears:        map[destination]int{},
			connected:     map[int]bool{},
			waits:         map[*wait]bool{},
			answers:       map[int]chan answer{},
			controlBuffer: make([]byte, controlBytes),
		}
		if err = e.postControl(); err == nil {
			engine.open[e] = true
		}
	})
	return e, err
}

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the group.
func (e *Endpoint) Size() int { return e.size }

// Exclusive calls f while nothing else calls MPI, on a thread that may.
func (e *Endpoint) Exclusive(f func()) { call(f) }

// tagOf returns MPI's tag for a message of ours.
func (e *Endpoint) tagOf(t transport.Tag, length int) (int, error) {
	rounds := e.mostTag>>e.lengthBits/ports - 1
	if t.Port < 0 || t.Port >= ports || t.Round < 0 || t.Round >= rounds {
		return 0, fmt.Errorf("mpi: %v: the MPI library has room for %d rounds of %d ports", t, rounds, ports)
	}
	return (1+t.Round*ports+t.Port)<<e.lengthBits | lengthHash(length, e.lengthBits), nil
}

// peer returns an error unless r is another rank.
func (e *Endpoint) peer(doing string, r int) error {
	if r < 0 || r >= e.size || r == e.rank {
		return fmt.Errorf("rank %d cannot %s rank %d: not another rank of the group of %d", e.rank, doing, r, e.size)
	}
	return nil
}

// A transfer is what sends and receives have in common.
type transfer struct {
	e      *Endpoint
	doing  string // what this end does with the rank at the other
	rank   int
	tag    transport.Tag
	mpiTag int
	done   bool
	err    error
}

// begin reports whether a transfer of so many bytes may begin; else it has failed.
func (t *transfer) begin(length int) bool {
	e := t.e
	if t.err = e.peer(t.doing, t.rank); t.err == nil {
		switch {
		case e.abort != nil: // nothing goes to those who have not heard of it
			t.err = e.abort
		case e.closed:
			t.err = fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed)
		default:
			t.mpiTag, t.err = e.tagOf(t.tag, length)
		}
	}
	t.done = t.err != nil
	return !t.done
}

// fail ends the transfer with an error.
func (t *transfer) fail(err error) {
	t.done, t.err = true, fmt.Errorf("rank %d: %s rank %d, %v: %w", t.e.rank, t.doing, t.rank, t.tag, err)
}

// abortDrain is how long Close waits for control messages, such as those of an abort, to be
// on their way.
const abortDrain = 2 * time.Second

// Close gives up what is still under way. What was sent still arrives: progress goes on in
// the background.
func (e *Endpoint) Close() error {
	for begun := time.Now(); time.Since(begun) < abortDrain; sleep(leastSleep) {
		left := 0
		call(func() {
			if !e.closed {
				e.progress()
			}
			left = len(e.controlSends)
		})
		if left == 0 {
			break
		}
	}
	var err error
	call(func() {
		if e.closed {
			return
		}
		e.closed = true
		receives := len(e.posted)
		for _, queue := range e.posted {
			for _, r := range queue {
				r.fail(fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed))
				if r.request != nil {
					err = errors.Join(err, e.cancel(r.request))
				}
			}
		}
		e.posted = nil
		delete(engine.open, e)
		err = errors.Join(err, e.cancel(e.controlReceive), e.poll())
		engine.lost = append(engine.lost, e.list...)
		// Messages that are left would be found in the next group of the same context.
		if !e.broken && e.abort == nil && len(e.sends)+receives+len(e.controlSends) == 0 {
			err = errors.Join(err, e.free())
		}
		e.drop()
	})
	return err
}
