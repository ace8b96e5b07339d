// Package runcheck compares the coded packets of a run with what the matrix, not the plan, makes of the initial packets: by
// fingerprints where several ranks have them, and by a relation at every symbol where one rank has all. See package verify.
package runcheck

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"volley/algo"
	"volley/field"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
	"volley/verify"
)

// A Checker is what an encoder keeps for the checks of its runs.
type Checker struct {
	matrix  matrix.Matrix
	problem *algo.Problem
	keep    Keep
	dense   poll.Once[matrix.Matrix] // the matrix: checks take all entries of a small one without structure in each run

	mu      sync.Mutex // guards what follows
	drawn   drawing
	related *related // nil: to be drawn
}

// Keep returns a matrix that is kept for later encoders, which make makes where there is none.
type Keep func(ctx context.Context, bytes int64, make func() (matrix.Matrix, error)) (matrix.Matrix, error)

// New returns the checker of an encoder.
func New(a matrix.Matrix, problem *algo.Problem, keep Keep) *Checker {
	return &Checker{matrix: a, problem: problem, keep: keep}
}

// Forget has the next relation drawn anew, as a run has failed.
func (c *Checker) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.related = nil
}

// entries returns the matrix. The error is the cause of the context.
func (c *Checker) entries(ctx context.Context) (a matrix.Matrix, err error) {
	defer poll.Catch(&err)
	return c.dense.Get(func() matrix.Matrix {
		a := c.matrix
		poll.Must(matrix.StructureOf(a).Ready(ctx))
		if a.Rows()*a.Cols() > mostEntries {
			return a
		}
		fact, err := c.problem.Factorisation(ctx)
		if poll.Must(err); fact != nil {
			return a
		}
		d, err := c.keep(ctx, int64(a.Rows()*a.Cols()*a.Field().SymbolBytes()), func() (matrix.Matrix, error) {
			return matrix.DenseFunc(a.Field(), a.Rows(), a.Cols(), a.At), nil
		})
		poll.Must(err)
		return d
	}), nil
}

// A drawing is what the ranks of a process share in the check of a run.
type drawing struct {
	seed     verify.Seed
	weights  []byte   // verify.Weights, of the coded packets
	asked    int      // rows of the matrix
	products [][]byte // of the rows with the weights
}

// draw returns the weights of a run. Where this process asks for so many rows of the matrix that layers take less, it
// also returns the products of all rows with the weights, and how many of the rows that are asked for are to be looked
// at all the same: structure that was found might be wrong.
func (c *Checker) draw(ctx context.Context, seed verify.Seed, rows int) (weights []byte, products [][]byte, look int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.drawn
	if d.weights == nil || d.seed != seed {
		*d = drawing{seed: seed, weights: verify.Weights(c.matrix.Field(), seed, c.matrix.Cols())}
	}
	if d.asked == 0 {
		look = min(1, rows)
	}
	d.asked += rows
	fact, err := c.problem.Factorisation(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if fact == nil || d.asked <= fact.Work() {
		return d.weights, nil, rows, nil
	}
	if d.products == nil {
		columns := slices.Chunk(d.weights, len(d.weights)/c.matrix.Cols())
		if d.products, err = fact.Transposed().Times(ctx, slices.Collect(columns)); err != nil {
			return nil, nil, 0, err
		}
	}
	return d.weights, d.products, look, nil
}

// mostParts is how many packets are combined at a time.
const mostParts = 256

// combine returns Σ coef(i)·packets[i·n:(i+1)·n], of packets in one piece of memory.
func combine(f field.Field, coef func(i int) field.Element, packets []byte, n int) []byte {
	sum, count := make([]byte, n), len(packets)/n
	coefs, parts := make([]field.Element, 1, min(count, mostParts)+1), make([][]byte, 1, min(count, mostParts)+1)
	coefs[0], parts[0] = field.One, make([]byte, n)
	for i := range count {
		coefs, parts = append(coefs, coef(i)), append(parts, packets[i*n:][:n])
		if len(parts) > mostParts || i+1 == count {
			f.Combine(sum, coefs, parts)
			copy(parts[0], sum)
			coefs, parts = coefs[:1], parts[:1]
		}
	}
	return sum
}

// share does something, until the context ends, for all i below n, each of which takes so many entries, on all cores where
// that pays.
func share(ctx context.Context, n, entries int, run func(i int)) error {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			run(i)
		}
	}
	if n*entries <= mostEntries {
		work()
	} else {
		var workers sync.WaitGroup
		for range min(n, runtime.GOMAXPROCS(0)) {
			workers.Go(work)
		}
		workers.Wait()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// columnOf returns the column of the matrix that a sink gets.
func columnOf(p plan.Plan, proc int) int { return p.Column(proc, 0) / p.Info().PieceCount() }
