package runcheck

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/verify"
)

// A related is the check of runs in which this rank has the packets and results of all processors, or its slice of them:
// they obey a random relation at every symbol, which the matrix gives, not the plan.
//
// The relation is the rank's own, and stays for later runs: those that are right tell nothing of it, and after one that is
// not it is drawn anew. So a wrong result passes with the same probability as by a relation drawn for each run.
type related struct {
	*verify.Relation
	a       matrix.Matrix
	rows    []int // of the packets
	columns []int // of the results
	sinks   []int // the processors of these
}

// relate returns the relation of runs of a plan.
func (c *Checker) relate(ctx context.Context, p plan.Plan) (*related, error) {
	r := &related{}
	for proc := range c.problem.Processors() {
		if row, source := c.problem.Source(proc); source {
			r.rows = append(r.rows, row)
		}
		if _, sink := c.problem.Sink(proc); sink {
			r.columns, r.sinks = append(r.columns, columnOf(p, proc)), append(r.sinks, proc)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.related; last != nil && slices.Equal(last.columns, r.columns) {
		return last, nil
	}
	var err error
	if r.a, err = c.entries(ctx); err != nil {
		return nil, err
	}
	var seed verify.Seed
	cryptorand.Read(seed[:])
	weights := slices.Collect(slices.Chunk(verify.RelationWeights(r.a.Field(), seed, r.a.Cols()), verify.RelationBytes(r.a.Field())))
	products, err := c.productsOf(ctx, r.a, weights)
	if err != nil {
		return nil, err
	}
	pick := func(rows [][]byte, list []int) (picked [][]byte) {
		for _, i := range list {
			picked = append(picked, rows[i])
		}
		return picked
	}
	r.Relation = verify.NewRelation(r.a.Field(), pick(products, r.rows), pick(weights, r.columns))
	c.related = r
	return r, nil
}

// productsOf returns the products of all rows of the matrix with weights, one for each column: by its layers where that
// takes less. Then it looks at some rows all the same, in the same time: structure that was found might be wrong.
func (c *Checker) productsOf(ctx context.Context, a matrix.Matrix, weights [][]byte) (products [][]byte, err error) {
	fact, err := c.problem.Factorisation(ctx)
	if err != nil {
		return nil, err
	}
	look := rand.Perm(a.Rows())
	if products = make([][]byte, a.Rows()); fact != nil && fact.Work() < a.Rows() {
		if products, err = fact.Transposed().Times(ctx, weights); err != nil {
			return nil, err
		}
		look = look[:fact.Work()]
	}
	packets := slices.Concat(weights...)
	err = share(ctx, len(look), a.Cols(), func(i int) {
		products[look[i]] = combine(a.Field(), func(column int) field.Element { return a.At(look[i], column) }, packets, len(weights[0]))
	})
	return products, err
}

// check returns an error unless packets and results, parts of one length, obey the relation.
func (r *related) check(packets, results [][]byte) error {
	f := r.a.Field()
	for j, part := range results {
		if f.FirstInvalid(part) >= 0 { // the arithmetic might not notice
			return &verify.CheckError{Proc: r.sinks[j]}
		}
	}
	offset := r.Wrong(packets, results)
	if offset < 0 {
		return nil
	}
	n := f.SymbolBytes()
	initial := make([]byte, r.a.Rows()*n)
	for i, row := range r.rows {
		copy(initial[row*n:][:n], packets[i][offset:])
	}
	for j, column := range r.columns {
		want := combine(f, func(row int) field.Element { return r.a.At(row, column) }, initial, n)
		if !bytes.Equal(want, results[j][offset:][:n]) {
			return &verify.CheckError{Proc: r.sinks[j]}
		}
	}
	return errEntries
}

var errEntries = errors.New("volley: the check fails, but not by the entries of the matrix: test the memory of this machine, and run again")

// A RelationCheck is the check of runs in which this rank has the packets and results of all processors, or its slice of them.
type RelationCheck struct {
	*related
	cores int
	took  atomic.Int64  // ns since it was asked last, of all goroutines together
	setup time.Duration // what it took to make it, until it was asked
}

// Relation returns the check of runs of p on so many cores. Its first run has taken the time to make it.
func (c *Checker) Relation(ctx context.Context, p plan.Plan, cores int) (*RelationCheck, error) {
	began := time.Now()
	r, err := c.relate(ctx, p)
	if err != nil {
		return nil, err
	}
	return &RelationCheck{related: r, cores: min(cores, runtime.GOMAXPROCS(0)), setup: time.Since(began)}, nil
}

// Observe is [executor.Job].ObserveAll.
func (r *RelationCheck) Observe(packets, results [][]byte) error {
	began := time.Now()
	err := r.check(packets, results)
	r.took.Add(int64(time.Since(began)))
	return err
}

// Took returns how long the check has taken in a run, on as many cores as there are, and with what it took to make it
// ready for the first one; 0 where r is nil.
func (r *RelationCheck) Took() time.Duration {
	if r == nil {
		return 0
	}
	took := time.Duration(r.took.Swap(0))/time.Duration(r.cores) + r.setup
	r.setup = 0
	return took
}
