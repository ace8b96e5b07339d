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

// A check compares the coded packets of a rank with what the matrix, not the plan, makes of the
// initial packets: by fingerprints, which travel beside the packets.
type check struct {
	e          *Encoder
	plan       plan.Plan
	t          transport.Transport
	comm       *collective.Comm
	first, end int // processors here

	in, out []*verify.Fingerprint // of processors here
	beside  bool                  // the inputs' are exchanged while packets travel; else later
	want    [][]byte              // fingerprints of the outputs
	took    atomic.Int64          // ns that fingerprints took during the run, of all processors together
}

// newCheck returns the check of a run. The seed is the same at all ranks.
func (e *Encoder) newCheck(t transport.Transport, c *collective.Comm, p plan.Plan, seed uint64, block int) *check {
	x := &check{e: e, plan: p, t: t, comm: c.Beside()}
	x.first, x.end = executor.Hosted(e.problem.Processors(), t.Rank(), t.Size())
	var key verify.Seed
	binary.LittleEndian.PutUint64(key[:], seed)
	for range x.end - x.first {
		x.in = append(x.in, verify.NewFingerprint(e.matrix.Field(), key, block))
		x.out = append(x.out, verify.NewFingerprint(e.matrix.Field(), key, block))
	}
	return x
}

// exchange takes the fingerprints of packets in memory, and exchanges them beside the run. Those of
// others are taken as the run reads them.
func (x *check) exchange(packets []Packet) executor.Beside {
	return x.comm.Gather(func() []byte {
		began := time.Now()
		for i, p := range packets {
			x.in[i].Add(p.Data)
		}
		x.took.Add(int64(time.Since(began)))
		return x.record()
	}, x.expect)
}

// observe is [executor.Job].Observe.
func (x *check) observe(proc int, inputs, outputs [][]byte) error {
	began := time.Now()
	if !x.beside {
		for _, part := range inputs {
			x.in[proc-x.first].Add(part)
		}
	}
	for _, part := range outputs {
		if x.e.matrix.Field().FirstInvalid(part) >= 0 { // came so over the wire; the arithmetic might not notice
			return &verify.CheckError{Proc: proc}
		}
		x.out[proc-x.first].Add(part)
	}
	x.took.Add(int64(time.Since(began)))
	return nil
}

// finish waits until all processors have found their coded packets right.
func (x *check) finish(ctx context.Context) error {
	if !x.beside {
		records, err := x.comm.Allgather(ctx, x.record())
		if err != nil {
			return err
		}
		x.expect(records)
	}
	for i, want := range x.want {
		if !bytes.Equal(want, x.out[i].Bytes()) {
			return &verify.CheckError{Proc: x.first + i}
		}
	}
	return x.comm.Barrier(ctx) // who failed has aborted instead
}

// record returns the fingerprints of the inputs here, as long as at any rank.
func (x *check) record() []byte {
	n, ranks := x.e.problem.Processors(), x.t.Size()
	length := len(x.in[0].Bytes())
	record := make([]byte, (n+ranks-1)/ranks*length)
	for i, p := range x.in {
		copy(record[i*length:], p.Bytes())
	}
	return record
}

// expect finds out the fingerprints of the outputs here by those of all inputs.
func (x *check) expect(records [][]byte) {
	n, ranks := x.e.problem.Processors(), x.t.Size()
	length := len(records[0]) / ((n + ranks - 1) / ranks)
	sources := make([][]byte, x.e.matrix.Rows())
	for rank, record := range records {
		first, end := executor.Hosted(n, rank, ranks)
		for k := first; k < end; k++ {
			if row, source := x.e.problem.Source(k); source {
				sources[row] = record[(k-first)*length:][:length]
			}
		}
	}
	var products [][]byte // by column
	if fact := x.e.problem.Factorisation(); fact != nil && len(x.in) > 1 {
		products = fact.Times(sources)
	}
	byEntries := rand.IntN(len(x.in)) // this one in any case: structure that was found might be wrong
	x.want = make([][]byte, len(x.in))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(x.in), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(x.want); i = int(next.Add(1)) - 1 {
				x.want[i] = make([]byte, length)
				if _, sink := x.e.problem.Sink(x.first + i); !sink {
					continue
				}
				column := x.plan.Column(x.first+i, 0) / x.plan.Info().PieceCount()
				if products != nil && i != byEntries {
					x.want[i] = products[column]
					continue
				}
				entries := make([]field.Element, len(sources))
				for row := range entries {
					entries[row] = x.e.matrix.At(row, column)
				}
				x.e.matrix.Field().Combine(x.want[i], entries, sources)
			}
		})
	}
	workers.Wait()
}

// observed returns how long fingerprints have taken during the run, on as many cores as there are.
func (x *check) observed() time.Duration {
	return time.Duration(x.took.Load()) / time.Duration(min(len(x.in), runtime.GOMAXPROCS(0)))
}
