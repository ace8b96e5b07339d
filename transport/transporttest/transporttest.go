// Package transporttest holds the tests that every transport passes.
//
// A transport whose ranks can live in one process is tested by
//
//	func TestTransport(t *testing.T) {
//		transporttest.Run(t, func(t *testing.T, n int) []transport.Transport { … })
//	}
//
// Where each rank is a process of its own, all of them run the same test:
//
//	for _, c := range transporttest.Cases() {
//		t.Run(c.Name, func(t *testing.T) {
//			rank := newGroup(t) // connected afresh for every case
//			if rank.Size() < c.MinRanks {
//				t.Skip()
//			}
//			if err := c.Run(t.Context(), rank); err != nil {
//				t.Errorf("rank %d: %v", rank.Rank(), err)
//			}
//		})
//	}
package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"volley/transport"
)

// Free is [FreeAddress] for a test.
func Free(t testing.TB) string {
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// FreeAddress returns an address of loopback at which nobody listens, with a port that the kernel gives to no connection.
func FreeAddress() (string, error) {
	for {
		listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String(), nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}
}

// Limit is how long a case may take before its waits are given up.
const Limit = 5 * time.Minute

// grace is how long after that a rank may take to return.
const grace = 10 * time.Second

// sizes are the group sizes that Run tests.
var sizes = []int{1, 2, 3, 5, 16}

// A Case is one test, told as what each rank does.
type Case struct {
	Name     string
	MinRanks int // it runs on any group of at least this many

	// Body is what one rank does. It talks to the other ranks through tr alone, and all its waits end with ctx.
	Body func(ctx context.Context, tr transport.Transport) error
}

// Run runs the case as the rank of tr, which it closes, and returns what is wrong, even where a wait does not end.
func (c Case) Run(ctx context.Context, tr transport.Transport) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, fmt.Errorf("still waiting after %v", Limit))
	defer cancel()
	result := make(chan error, 1)
	go func() {
		err := c.Body(ctx, tr)
		if closeErr := tr.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("closing: %w", closeErr))
		}
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(grace):
		return fmt.Errorf("a wait goes on although its ctx has ended (%v)", context.Cause(ctx))
	}
}

// Run runs all cases on groups of several sizes whose ranks live in this process. The factory returns the ranks of a
// new group of n, in order; Run closes them. At the end no more goroutines may run than at the start, so the caller is no
// parallel test; the cases are.
func Run(t *testing.T, factory func(t *testing.T, n int) []transport.Transport) {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	t.Run("suite", func(t *testing.T) { // which ends with its parallel tests
		for _, c := range Cases() {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				for _, n := range sizes {
					if n < c.MinRanks {
						continue
					}
					passed := t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
						for _, err := range runGroup(t.Context(), c, newGroup(t, factory, n)) {
							t.Error(err)
						}
					})
					if !passed {
						break // larger groups would only take longer to say the same
					}
				}
			})
		}
	})
	if t.Failed() {
		return // a rank that hangs is no news
	}
	if stacks := leak(goroutines); stacks != "" {
		t.Errorf("goroutines are left after Close:\n%s", stacks)
	}
}

func newGroup(t *testing.T, factory func(t *testing.T, n int) []transport.Transport, n int) []transport.Transport {
	group := factory(t, n)
	if len(group) != n {
		t.Fatalf("the factory made %d ranks, want %d", len(group), n)
	}
	for r, tr := range group {
		if tr.Rank() != r || tr.Size() != n {
			t.Fatalf("rank %d of %d says it is rank %d of %d", r, n, tr.Rank(), tr.Size())
		}
	}
	return group
}

// runGroup runs c as every rank and returns what is wrong by rank. When one fails the others are stopped, not heard.
func runGroup(ctx context.Context, c Case, group []transport.Transport) []error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopped := errors.New("another rank failed")
	errs := make([]error, len(group))
	var ranks sync.WaitGroup
	for r, tr := range group {
		ranks.Go(func() {
			if err := c.Run(ctx, tr); err != nil && !errors.Is(err, stopped) {
				errs[r] = fmt.Errorf("rank %d: %w", r, err)
				cancel(stopped)
			}
		})
	}
	ranks.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// leak waits until no more goroutines run than the limit. Else it returns the stacks of all that do.
func leak(limit int) string {
	for end := time.Now().Add(Limit); runtime.NumGoroutine() > limit; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			return string(stacks[:runtime.Stack(stacks, true)])
		}
	}
	return ""
}
