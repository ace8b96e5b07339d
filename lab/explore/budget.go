package explore

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"volley/algo"
	"volley/internal/selection"
)

// Budget is the bytes that all requests together may take of memory.
const Budget = 2 << 30

// shares is what a request takes of it at most, within the bounds on what it asks (TestShares).
var shares = map[string]int64{
	"plan": 544 << 20, "cost": 192 << 20, "load": 800 << 20, "protect": 192 << 20,
}

var memory = semaphore.NewWeighted(Budget)

// patience is how long a request waits for its share.
const patience = 10 * time.Second

// ErrBusy is the error where others have the memory that a request needs.
var ErrBusy = errors.New("volley-lab explore is busy: other requests take the memory that it has for all: try again when they have ended, or use the command line")

// Admit waits for the share of a request, which is yet to be read and may have so many bytes. What it has of the budget
// is its own until release is called. The error is [ErrBusy] or the cause of ctx.
func Admit(ctx context.Context, method string) (limit int64, release func(), err error) {
	waiting, cancel := context.WithTimeoutCause(ctx, patience, ErrBusy)
	defer cancel()
	share := shares[method]
	if memory.Acquire(waiting, share) != nil {
		return 0, nil, context.Cause(waiting)
	}
	limit = mostRequest
	if method == "load" {
		limit = mostBytes
	}
	return limit, func() { memory.Release(share) }, nil
}

// bounded returns what the flags select, for at most so many processors: for some K, or that of the flags.
func (f flags) bounded(mostK int, ks []int) (*selection.Selection, error) {
	s, err := f.parse()
	if err != nil {
		return nil, err
	}
	if s.Algorithm != algo.Auto {
		if _, err := algo.Lookup(s.Algorithm); err != nil {
			return nil, selection.Mark("algorithm", err)
		}
	}
	if err := bounded(s, mostK); err != nil {
		return nil, err
	}
	largest := s.Processors
	if ks != nil {
		largest = slices.Max(ks)
	}
	return s, invertible(s, largest)
}

// bounded returns an error where s is larger than the page takes: K, the sinks, or both together where they are apart.
func bounded(s *selection.Selection, mostK int) error {
	tooMany := func(flag string, n int, noun string, limit int) error {
		return selection.Markf(flag, "%d %s: the page takes %d at most; the command line, without the page, takes more", n, noun, limit)
	}
	for _, limit := range []struct {
		flag  string
		n     int
		noun  string
		limit int
	}{
		{"processors", s.Processors, "processors", mostK},
		{"sinks", s.Sinks, "sinks", mostK},
		{"ports", s.Ports, "ports", largestCompared},
		{"rounds-over", s.Limits.Rounds.Excess(), "rounds", math.MaxInt32},
		{"max-memory", s.Limits.Memory, "packets", math.MaxInt32},
		{"max-compute", s.Limits.Compute, "multiply-adds", math.MaxInt32},
	} {
		if limit.n > limit.limit {
			return tooMany(limit.flag, limit.n, limit.noun, limit.limit)
		}
	}
	if s.Separate && s.Processors+s.Sinks > mostK {
		return tooMany("sinks", s.Processors+s.Sinks, "processors with the sinks", mostK)
	}
	bytes, err := s.Bytes()
	if err != nil {
		return err
	}
	if bytes > largestPacket {
		return selection.Markf("size", "%q: the page takes 1PiB at most; the command line takes more", s.Size)
	}
	return nil
}

// invertible returns an error where the inverse of a matrix of k rows would take long, as it cannot be cancelled.
func invertible(s *selection.Selection, k int) error {
	spec, err := s.Spec()
	if err != nil || !s.Inverse || k <= mostInverted || spec.Family == "dft" || spec.Family == "lagrange" {
		return err
	}
	return selection.Markf("inverse", "the inverse of a matrix of %d rows: the page takes %d rows at most, but of dft and lagrange; the command line takes more", k, mostInverted)
}
