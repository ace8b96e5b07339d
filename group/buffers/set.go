package buffers

import (
	"context"

	"volley/transport"
)

// A Set is buffers of this rank, with their parity in memory that the set makes.
type Set struct {
	Buffers [][]byte // nil: they are lost, and Recover makes them anew
	Parity  []byte   // nil, or that of a set of an earlier run

	t       transport.Transport
	options Options
}

// New returns a set. All ranks make one, each of its own buffers, and call the same methods.
func New(t transport.Transport, o Options, buffers ...[]byte) *Set {
	return &Set{Buffers: buffers, t: t, options: o}
}

// Protect is [Protect] with as much parity as it takes.
func (s *Set) Protect(ctx context.Context) error {
	n, err := ParityBytes(ctx, s.t, sizesOf(s.Buffers), s.options)
	if err != nil {
		return err
	}
	if int64(len(s.Parity)) < n {
		s.Parity = make([]byte, n)
	}
	return Protect(ctx, s.t, s.Buffers, s.Parity, s.options)
}

// Recover is [Recover]. Of a rank that has no buffers it makes them, and the parity. After an error such a rank has none
// yet, and calling it again says so again.
func (s *Set) Recover(ctx context.Context) (*Report, error) {
	lost, buffers, parity := s.Buffers == nil, s.Buffers, s.Parity
	if lost {
		parity = nil // it is not that of these buffers
	}
	sizes, n, err := Sizes(ctx, s.t, parity, s.options)
	if err != nil {
		return nil, err
	}
	if lost {
		buffers = make([][]byte, len(sizes))
		for i, size := range sizes {
			buffers[i] = make([]byte, size)
		}
	}
	if int64(len(s.Parity)) < n {
		s.Parity = make([]byte, n)
	}
	r, err := Recover(ctx, s.t, buffers, lost, s.Parity, s.options)
	if err == nil {
		s.Buffers = buffers
	}
	return r, err
}
