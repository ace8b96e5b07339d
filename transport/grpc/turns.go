package grpc

import (
	"slices"
	"time"
)

// turns says which long messages may be sent to this rank: those of a round together, as ports may be
// links, and those of the next when these have nearly come, or do not come at all for a while: then
// the link is free. A message whose head has come does not wait for one of which nothing has come.
//
// transport/mpi has the same rule. It counts fragments, as MPI says of whole ones only that they have come, waits
// for connections and for the pace of a link: what both would share is less than the interface that it takes.
type turns struct {
	waiting, cleared []*transfer // in the order in which they were posted
	timer            *time.Timer
}

// clearAfter is how long nothing may come of a message whose sender was told clear-to-send.
const clearAfter = 20 * time.Millisecond

// await has the sender of a message told clear-to-send when it is its turn, once.
func (e *Endpoint) await(t *transfer) {
	if !t.heard.IsZero() {
		return
	}
	if !slices.Contains(e.turns.waiting, t) {
		e.turns.waiting = append(e.turns.waiting, t)
	}
	e.clear()
}

// forget takes a message out that does not come.
func (s *turns) forget(t *transfer) {
	other := func(x *transfer) bool { return x == t }
	s.waiting, s.cleared = slices.DeleteFunc(s.waiting, other), slices.DeleteFunc(s.cleared, other)
}

// clear sends the clear-to-send of messages whose turn it is.
func (e *Endpoint) clear() {
	s := &e.turns
	s.cleared = slices.DeleteFunc(s.cleared, func(t *transfer) bool { return t.moved == t.size })
	s.waiting = slices.DeleteFunc(s.waiting, func(t *transfer) bool {
		for _, c := range s.cleared {
			if c.Tag.Round != t.Tag.Round && (c.moved > 0 || t.moved == 0) && c.size-c.moved > headBytes && time.Since(c.heard) < clearAfter {
				return false
			}
		}
		s.cleared = append(s.cleared, t)
		e.peers[t.Rank].tell(t)
		return true
	})
	if len(s.waiting) > 0 && s.timer == nil {
		s.timer = time.AfterFunc(clearAfter, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if s.timer = nil; !e.closed {
				e.clear()
			}
		})
	}
}
