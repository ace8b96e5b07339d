package local

import (
	"context"
	"errors"
	"sync"

	"volley/transport"
)

// Run runs a group of n ranks in this process, each in a goroutine of its own,
// and returns when all have ended. A rank that returns an error aborts the
// group. Run returns the errors of the ranks that failed by themselves, joined
// in rank order, without those that only heard of it and those that say the same
// again.
func Run(ctx context.Context, n int, rank func(ctx context.Context, t transport.Transport) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, end := range New(n) {
		wg.Go(func() {
			defer end.Close()
			if errs[r] = rank(ctx, end); errs[r] != nil {
				end.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	var failures []error
	reported := map[string]bool{}
	for _, err := range errs {
		if err != nil && !errors.As(err, new(*transport.AbortError)) && !reported[err.Error()] {
			reported[err.Error()] = true
			failures = append(failures, err)
		}
	}
	if len(failures) == 0 { // aborted from outside, if at all
		return errors.Join(errs...)
	}
	return errors.Join(failures...)
}
