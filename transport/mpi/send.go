//go:build mpi

package mpi

import (
	"context"

	"volley/transport"
)

// A sending is a message under way to another rank.
type sending struct {
	transfer
	unsent   [][][]byte // fragments, the blocks of each
	long     bool       // it needs a clear-to-send
	requests []*request
}

// Of a message of more than eagerFragments the others wait for a clear-to-send. The receiver
// sends it once it has posted the receive, and the long messages before have come, or nearly.
// Else a rank that is ahead would take its receiver's link from the one whose turn it is. A
// clear-to-send is not asked for, and goes ahead of what the receiver sends in that round: an
// answer would queue behind that.
const eagerFragments = 2

// A destination is a rank and MPI's tag of messages to it.
type destination struct{ rank, mpiTag int }

// Send sends the parts from where they lie.
func (e *Endpoint) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	s := &sending{transfer: transfer{e: e, doing: "send to", rank: dst, tag: tag}}
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	call(func() {
		if s.begin(length) {
			s.unsent = fragments(parts)
			s.long = len(s.unsent) > eagerFragments
			e.sends = append(e.sends, s)
			e.sendCleared(destination{dst, s.mpiTag})
		}
	})
	return s
}

// fragments cuts a message into fragments, all of fragmentBytes but the last.
func fragments(parts [][]byte) (list [][][]byte) {
	var blocks [][]byte
	room := fragmentBytes
	for _, part := range parts {
		for len(part) > 0 {
			n := min(room, len(part))
			blocks = append(blocks, part[:n])
			part, room = part[n:], room-n
			if room == 0 {
				list, blocks, room = append(list, blocks), nil, fragmentBytes
			}
		}
	}
	return append(list, blocks)
}

// sendCleared sends what may go of the messages to a destination, in their order.
func (e *Endpoint) sendCleared(to destination) {
	for _, s := range e.sends {
		if s.rank != to.rank || s.mpiTag != to.mpiTag || len(s.unsent) == 0 {
			continue
		}
		if s.long && e.clears[to] == 0 {
			if len(s.requests) == 0 {
				s.start(eagerFragments)
			}
			return // those that follow have to wait for the rest of it
		}
		if s.long {
			if e.clears[to]--; e.clears[to] == 0 {
				delete(e.clears, to)
			}
		}
		s.start(len(s.unsent))
	}
}

// start sends so many fragments.
func (s *sending) start(n int) {
	s.e.connected[s.rank] = true
	for _, blocks := range s.unsent[:n] {
		r, err := s.e.send(s.rank, s.mpiTag, blocks)
		if err != nil {
			s.unsent = nil
			s.fail(err)
			return
		}
		s.requests = append(s.requests, r)
	}
	s.unsent = s.unsent[n:]
}

// advance reports whether MPI needs the parts no more.
func (s *sending) advance() bool {
	if len(s.unsent) > 0 {
		return false
	}
	for _, r := range s.requests {
		if !r.over {
			return false
		}
		if r.err != nil {
			s.fail(r.err)
		}
	}
	s.done = true
	return true
}

// Wait waits until MPI needs the parts no more.
func (s *sending) Wait(ctx context.Context) error {
	return s.wait(ctx, func() {})
}
