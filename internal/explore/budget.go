package explore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"volley/algo"
	"volley/internal/selection"
)

// What all requests together may take. Memory is counted by estimates, which are no less
// than what the heap then has of a request, what is not yet collected included
// (TestEstimates).
const (
	Budget   = 1 << 30 // bytes
	patience = 10 * time.Second
)

// What requests take. A page asks up to three things at a time.
const (
	baseBytes         = 24 << 20
	bytesPerProcessor = 64 << 10 // of a plan
	bytesPerSpan      = 1 << 10
	loadFactor        = 24 // bytes for each of a file
	fewestCores       = 4
)

var (
	memory = semaphore.NewWeighted(Budget)
	cores  = semaphore.NewWeighted(int64(max(fewestCores, runtime.GOMAXPROCS(0))))
)

// ErrBusy is the error where others have the memory or the cores that a request needs.
var ErrBusy = errors.New("volley explore is busy: other requests take the memory or the cores that it has for all: try again when they have ended, or use the command line")

// A share is what a request has of the budget.
type share struct {
	bytes int64
	cores int64
}

type shareKey struct{}

// Admit returns a context with which [Answer] keeps to the budget, for a request of so many
// bytes, -1 where that is not known, which is yet to be read; no more than most of them are
// to be. What the request has of the budget is its own until release is called. The error is
// [ErrBusy] or the cause of ctx.
func Admit(ctx context.Context, method string, bytes int64) (admitted context.Context, most int64, release func(), err error) {
	s := new(share)
	ctx = context.WithValue(ctx, shareKey{}, s)
	release = func() {
		memory.Release(s.bytes)
		cores.Release(s.cores)
	}
	if method != "load" {
		return ctx, mostRequest, release, nil
	}
	if bytes < 0 || bytes > mostBytes {
		bytes = mostBytes
	}
	if err := take(ctx, baseBytes+loadFactor*bytes); err != nil {
		release()
		return nil, 0, nil, err
	}
	return ctx, mostBytes, release, nil
}

// take adds bytes to the share of a request and, unless it has one, a core, and waits for
// them a while. The error is [ErrBusy] or the cause of ctx. Without a budget it does nothing.
func take(ctx context.Context, bytes int64) error {
	s, ok := ctx.Value(shareKey{}).(*share)
	if !ok {
		return nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, patience, ErrBusy)
	defer cancel()
	if s.cores == 0 {
		if cores.Acquire(waiting, 1) != nil {
			return context.Cause(waiting)
		}
		s.cores = 1
	}
	if memory.Acquire(waiting, bytes) != nil {
		return context.Cause(waiting)
	}
	s.bytes += bytes
	return nil
}

// rest gives the core of a request back, which is going to wait most of the time.
func rest(ctx context.Context) {
	if s, ok := ctx.Value(shareKey{}).(*share); ok {
		cores.Release(s.cores)
		s.cores = 0
	}
}

// planBytes is what a plan for so many processors takes.
func planBytes(processors int) int64 {
	return baseBytes + int64(processors)*bytesPerProcessor
}

// admit returns what the flags select, for at most so many processors, and takes what that
// needs of the budget: for some K or, where there are none, for that of the flags. The error
// is a *selection.Error, or that of ctx or the budget.
func (f flags) admit(ctx context.Context, mostK int, ks []int) (*selection.Selection, error) {
	s, err := f.parse()
	if err != nil {
		return nil, err
	}
	if s.Algorithm != algo.Auto {
		if _, err := algo.Lookup(s.Algorithm); err != nil {
			return nil, at("algorithm", err)
		}
	}
	if err := bounded(s, mostK); err != nil {
		return nil, err
	}
	most := s.Processors
	if ks != nil {
		most = slices.Max(ks)
	}
	if err := invertible(s, most); err != nil {
		return nil, err
	}
	return s, take(ctx, planBytes(most+s.Sinks))
}

// bounded returns an error where a number of s is larger than the page takes. K is at most
// mostK, and so are the sinks, or both together where they are apart.
func bounded(s *selection.Selection, mostK int) error {
	over := func(flag string, n int, what string, most int) error {
		return at(flag, fmt.Errorf("%d %s: the page takes %d at most; the command line, without the page, takes more", n, what, most))
	}
	for _, limit := range []struct {
		flag string
		n    int
		what string
		most int
	}{
		{"processors", s.Processors, "processors", mostK},
		{"sinks", s.Sinks, "sinks", mostK},
		{"ports", s.Ports, "ports", largestCompared},
		{"rounds-over", s.Limits.Rounds.Over(), "rounds", math.MaxInt32},
		{"max-memory", s.Limits.Memory, "packets", math.MaxInt32},
		{"max-compute", s.Limits.Compute, "multiply-adds", math.MaxInt32},
	} {
		if limit.n > limit.most {
			return over(limit.flag, limit.n, limit.what, limit.most)
		}
	}
	if s.Separate && s.Processors+s.Sinks > mostK {
		return over("sinks", s.Processors+s.Sinks, "processors with the sinks", mostK)
	}
	bytes, err := s.Bytes()
	if err != nil {
		return err
	}
	if bytes > largestPacket {
		return at("size", fmt.Errorf("%q: the page takes 1PiB at most; the command line takes more", s.Size))
	}
	return nil
}

// invertible returns an error where the inverse of a matrix of k rows would take long: the
// computing cannot be cancelled.
func invertible(s *selection.Selection, k int) error {
	spec, err := s.Spec()
	if err != nil || !s.Inverse || k <= mostInverted || spec.Family == "dft" || spec.Family == "lagrange" {
		return err
	}
	return at("inverse", fmt.Errorf("the inverse of a matrix of %d rows: the page takes %d rows at most, but of dft and lagrange; the command line takes more", k, mostInverted))
}
