package algo_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"volley/algo"
	"volley/matrix/matrices"
	"volley/sim"
)

// A fuse is a context that ends when it has been asked so many times.
type fuse struct {
	context.Context
	left atomic.Int64
}

func (f *fuse) Err() error {
	if f.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestPlanningEnds checks that no plan comes of a problem whose context ends meanwhile, and
// that without an end the plan is the same as without a context.
func TestPlanningEnds(t *testing.T) {
	model := sim.Model{Beta: 20000, Tau: 1e-9, Gamma: 1e-10, Bytes: 1 << 20}
	for _, c := range []struct {
		spec, field string
		k           int
	}{{"dft", "257", 64}, {"random:1", "31", 60}, {"random:1", "2^8", 81}, {"cauchy", "2^8", 48}} {
		p := shaped(t, c.field, must(matrices.ParseSpec(c.spec))(t), c.k, c.k, false, 1)
		want := must(algo.Choose(algo.Auto, p, model))(t).Info().Name()
		for after := int64(1); ; after *= 2 {
			ctx := &fuse{Context: t.Context()}
			ctx.left.Store(after)
			p.Context = ctx
			q, err := algo.Choose(algo.Auto, p, model)
			if err == nil {
				if ctx.left.Load() < 0 || q.Info().Name() != want || after < 8 {
					t.Errorf("%v, after it looked at its context %d times: %s, want %s", c, after, q.Info().Name(), want)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%v, after %d: %v", c, after, err)
			}
		}
	}
}
