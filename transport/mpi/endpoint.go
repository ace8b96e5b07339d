//go:build mpi

package mpi

// #include <mpi.h>
import "C"

import (
	"errors"
	"time"

	"volley/transport"
)

// An Endpoint is this process's rank of a group. Any number of goroutines may use it at once.
type Endpoint struct {
	*communicator
	numbering // of tags
	host      *transport.Host

	// What follows is guarded by the engine's lock.
	serial    int
	waiting   []*transfer         // sends that wait for a clear-to-send, or for others of their stream
	clears    map[destination]int // clear-to-sends that came before the sends
	connected []bool              // ranks that were sent or have sent something
	uncleared []*transfer         // long receives whose senders were not told clear-to-send, oldest first
	refused   []*transfer         // receives that get messages of other lengths
	checked   time.Time           // when messages of other lengths were looked for

	idleTransfers []*transfer // for the next ones
	buffers       [][]byte    // for packed fragments

	controlSends int // under way
	control      *controlReceive
	answers      map[int]chan int
	questions    int // so far: the number of one is its place in answers

	waits    map[*queue]bool // whether somebody waits, or has given up
	poller   *queue          // that polls for all
	patience int             // see mostPatience
	abort    *transport.AbortError
	closed   bool
	broken   bool // a wait was given up: messages may be left that nobody takes
}

var (
	_ transport.Transport  = (*Endpoint)(nil)
	_ transport.Inquirer   = (*Endpoint)(nil)
	_ transport.CoreSharer = (*Endpoint)(nil)
	_ transport.Limiter    = (*Endpoint)(nil)
	_ transport.HostSharer = (*Endpoint)(nil)
)

// newEndpoint returns this process's rank of those of a communicator that name the same set.
func newEndpoint(parent C.MPI_Comm, set, key int) (e *Endpoint, err error) {
	var g *communicator
	if splits := func() { g, err = split(parent, set, key) }; engine.multiple {
		splits() // other endpoints go on until all processes have come
	} else {
		call(splits)
	}
	if err != nil {
		return nil, err
	}
	return openEndpoint(g), nil
}

// arrivedEndpoint returns this process's rank of a communicator, when all its processes have come.
func arrivedEndpoint(handle int, timeout time.Duration) (*Endpoint, error) {
	g, err := arrive(handle, timeout)
	if err != nil {
		return nil, err
	}
	return openEndpoint(g), nil
}

// openEndpoint returns the endpoint of a communicator that is its own.
func openEndpoint(g *communicator) (e *Endpoint) {
	call(func() {
		e = &Endpoint{
			communicator: g,
			clears:       map[destination]int{},
			connected:    make([]bool, g.size),
			waits:        map[*queue]bool{},
			answers:      map[int]chan int{},
		}
		e.numbering = numberingOf(g.mostTag)
		e.host = &transport.Host{Hosts: g.machines, Local: g.machine, Crowded: g.crowded, Separate: true, Yield: transport.Yield, Aborted: e.aborted}
		e.control = &controlReceive{e: e, buffer: make([]byte, controlBytes)}
		e.control.pins.Pin(&e.control.buffer[0])
		e.postControl()
		e.post()
		e.isOpen(true)
	})
	return e
}

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the group.
func (e *Endpoint) Size() int { return e.size }

// Host returns what the ranks of this machine share.
func (e *Endpoint) Host() *transport.Host { return e.host }

// aborted is [transport.Host].Aborted.
func (e *Endpoint) aborted() (err error) {
	call(func() {
		if e.progress(); e.abort != nil {
			err = e.abort
		}
	})
	return err
}

// Split returns this process's rank of the ranks that name the same set, from 0, in the order of their keys. All ranks
// call it, when they are there: it waits for them without a bound.
func (e *Endpoint) Split(set, key int) (*Endpoint, error) { return newEndpoint(e.comm, set, key) }

// Exclusive calls f while nothing else calls MPI, on a thread that may.
func (e *Endpoint) Exclusive(f func()) { call(f) }

// Cores returns this rank's share of the cores of its machine.
func (e *Endpoint) Cores() int { return e.cores }

// Overlaps reports whether messages travel while a rank computes.
func (e *Endpoint) Overlaps() bool { return e.overlaps }

// Limits returns for which tags there is room, by the largest tag that the MPI library has.
func (e *Endpoint) Limits() transport.Limits { return e.limits() }

// abortDrain is how long Close waits for control messages, such as those of an abort, to be on their way.
const abortDrain = 2 * time.Second

// Close gives up what is still under way. What was sent still arrives: progress goes on in the background.
func (e *Endpoint) Close() (err error) {
	e.drain()
	call(func() { err = e.close() })
	return err
}

// leave ends the use of an endpoint for a while: see [Open].
func (e *Endpoint) leave() {
	e.drain()
	call(func() { e.isOpen(false) })
}

// drain waits until control messages are on their way, for a while.
func (e *Endpoint) drain() {
	for begun := time.Now(); time.Since(begun) < abortDrain; sleep(leastSleep) {
		remaining := 0
		call(func() {
			if !e.closed {
				e.progress()
			}
			remaining = e.controlSends
		})
		if remaining == 0 {
			break
		}
	}
}

// close is Close for who holds the lock.
func (e *Endpoint) close() (err error) {
	if e.closed {
		return nil
	}
	e.closed = true
	e.host.Close(e.abort != nil || e.broken)
	remaining := len(e.waiting) + e.active - 1 // but the control receive
	for i, s := range e.outstanding {
		if t, ok := s.owner.(*transfer); s.owner == e.control || ok && t.Receive {
			err = errors.Join(err, e.cancel(i))
		}
	}
	e.isOpen(false)
	err = errors.Join(err, e.poll())
	// Messages that are left would be found in the next group of the same context.
	if e.broken || e.abort != nil || remaining+e.active > 0 {
		engine.lost = append(engine.lost, e)
	} else {
		err = errors.Join(err, e.free())
	}
	e.drop()
	return err
}
