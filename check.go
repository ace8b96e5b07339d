package volley

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"volley/collective"
	"volley/executor"
	"volley/field"
	"volley/plan"
	"volley/transport"
	"volley/verify"
)

// A check compares the coded packets of all processors with what the matrix, not the plan, makes of the
// initial packets: by fingerprints.
type check struct {
	e          *Encoder
	plan       plan.Plan
	t          transport.Transport
	comm       *collective.Comm
	first, end int // processors here

	prints []*verify.Fingerprints // of each processor here: of its packet, if it is a source, and of its result
	took   atomic.Int64           // ns that fingerprints took during the run, of all processors together
}

// newCheck returns the check of a run. The seed is the same at all ranks.
func (e *Encoder) newCheck(t transport.Transport, c *collective.Comm, p plan.Plan, seed uint64, block int) *check {
	x := &check{e: e, plan: p, t: t, comm: c.Beside()}
	x.first, x.end = executor.Hosted(e.problem.Processors(), t.Rank(), t.Size())
	var key verify.Seed
	binary.LittleEndian.PutUint64(key[:], seed)
	for k := x.first; k < x.end; k++ {
		_, source := e.problem.Source(k)
		_, sink := e.problem.Sink(k)
		packets := 1
		if source && sink {
			packets = 2
		}
		x.prints = append(x.prints, verify.NewFingerprints(e.matrix.Field(), key, block, packets))
	}
	return x
}

// observe is [executor.Job].Observe.
func (x *check) observe(proc int, inputs, outputs [][]byte) error {
	began := time.Now()
	for _, part := range outputs {
		if x.e.matrix.Field().FirstInvalid(part) >= 0 { // came so over the wire; the arithmetic might not notice
			return &verify.CheckError{Proc: proc}
		}
	}
	for i := range max(len(inputs), len(outputs)) {
		var parts [][]byte
		if i < len(inputs) {
			parts = append(parts, inputs[i])
		}
		if i < len(outputs) {
			parts = append(parts, outputs[i])
		}
		x.prints[proc-x.first].Add(parts...)
	}
	x.took.Add(int64(time.Since(began)))
	return nil
}

// mostEntries is up to how many entries of the matrix every rank looks at: then it finds out by itself
// that all coded packets are right, and needs no second exchange to hear it.
const mostEntries = 64 * 64

// finish waits until the coded packets of all processors are there and are right.
func (x *check) finish(ctx context.Context) error {
	records, err := x.comm.Allgather(ctx, x.record())
	if err != nil {
		return err
	}
	n := x.e.problem.Processors()
	in, out := make([][]byte, n), make([][]byte, n)
	for rank, record := range records {
		first, end := executor.Hosted(n, rank, x.t.Size())
		length := len(record) / (2 * x.most())
		for k := first; k < end; k++ {
			both := record[(k-first)*2*length:]
			in[k], out[k] = both[:length], both[length:][:length]
		}
	}
	all := x.e.problem.Factorisation() != nil || x.e.matrix.Rows()*x.e.matrix.Cols() <= mostEntries
	first, end := x.first, x.end
	if all {
		first, end = 0, n
	}
	wrong := -1
	for i, want := range x.expect(in, first, end) {
		k := first + i
		switch here := x.first <= k && k < x.end; {
		case want == nil || bytes.Equal(want, out[k]):
		case here:
			return &verify.CheckError{Proc: k}
		case wrong < 0:
			wrong = k
		}
	}
	if wrong >= 0 { // which its own rank says to all, too
		return &transport.AbortError{Rank: executor.RankOf(wrong, n, x.t.Size()), Cause: &verify.CheckError{Proc: wrong}}
	}
	if all {
		return nil
	}
	return x.comm.Barrier(ctx) // who failed has aborted instead
}

// most returns the largest number of processors at a rank.
func (x *check) most() int { return (x.e.problem.Processors() + x.t.Size() - 1) / x.t.Size() }

// record returns the fingerprints of the packets here, two of each processor, as long as at any rank.
func (x *check) record() []byte {
	var record []byte
	length := 0
	for _, p := range x.prints {
		all := p.Bytes() // of a source or a sink alone, one, which is both
		length = len(all[0])
		record = append(append(record, all[0]...), all[len(all)-1]...)
	}
	return append(record, make([]byte, (x.most()-len(x.prints))*2*length)...)
}

// expect returns the fingerprints that the outputs of processors [first, end) are to have by those of all
// inputs, nil for one that has none.
func (x *check) expect(in [][]byte, first, end int) [][]byte {
	sources := make([][]byte, x.e.matrix.Rows())
	for k, print := range in {
		if row, source := x.e.problem.Source(k); source {
			sources[row] = print
		}
	}
	a := x.e.entries()
	var products [][]byte // by column
	if fact := x.e.problem.Factorisation(); fact != nil && end-first > 1 {
		products = fact.Times(sources)
	}
	byEntries := first + rand.IntN(end-first) // this one in any case: structure that was found might be wrong
	want := make([][]byte, end-first)
	var next atomic.Int64
	work := func() {
		for k := first + int(next.Add(1)) - 1; k < end; k = first + int(next.Add(1)) - 1 {
			if _, sink := x.e.problem.Sink(k); !sink {
				continue
			}
			column := x.plan.Column(k, 0) / x.plan.Info().PieceCount()
			if products != nil && k != byEntries {
				want[k-first] = products[column]
				continue
			}
			entries := make([]field.Element, len(sources))
			for row := range entries {
				entries[row] = a.At(row, column)
			}
			want[k-first] = make([]byte, len(in[0]))
			x.e.matrix.Field().Combine(want[k-first], entries, sources)
		}
	}
	if (end-first)*len(sources) <= mostEntries {
		work()
		return want
	}
	var workers sync.WaitGroup
	for range min(end-first, runtime.GOMAXPROCS(0)) {
		workers.Go(work)
	}
	workers.Wait()
	return want
}

// observed returns how long fingerprints have taken during the run, on as many cores as there are.
func (x *check) observed() time.Duration {
	return time.Duration(x.took.Load()) / time.Duration(min(len(x.prints), runtime.GOMAXPROCS(0)))
}
