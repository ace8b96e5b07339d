package volley

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
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
	beside  chan struct{}         // closed when the inputs' were exchanged while packets travelled; nil: later
	want    [][]byte              // fingerprints of the outputs
	err     error                 // of the exchange
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

// begin takes the fingerprints of packets in memory, and exchanges them, while the run is under
// way. Those of others are taken as the run reads them.
func (x *check) begin(ctx context.Context, packets []Packet) {
	for _, p := range packets {
		if p.Source != nil || x.t.Size() == 1 {
			return
		}
	}
	x.beside = make(chan struct{})
	go func() {
		defer close(x.beside)
		for i, p := range packets {
			if x.e.matrix.Field().FirstInvalid(p.Data) >= 0 {
				return // the run ends with this error
			}
			x.in[i].Add(p.Data)
		}
		x.err = x.expect(ctx)
	}()
}

// observe is [executor.Job].Observe.
func (x *check) observe(proc int, inputs, outputs [][]byte) error {
	began := time.Now()
	if x.beside == nil {
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

// finish waits until all processors have found their coded packets right. It is given the error
// of the run.
func (x *check) finish(ctx context.Context, err error) error {
	if x.beside != nil {
		<-x.beside
	} else if err == nil {
		x.err = x.expect(ctx)
	}
	if x.err != nil && (err == nil || !errors.As(x.err, new(*transport.AbortError))) { // else it has ended by that of the run
		return x.err
	}
	if err != nil {
		return err
	}
	for i, want := range x.want {
		if !bytes.Equal(want, x.out[i].Bytes()) {
			return &verify.CheckError{Proc: x.first + i}
		}
	}
	return x.comm.Barrier(ctx) // who failed has aborted instead
}

// expect exchanges the fingerprints of all inputs and finds out those of the outputs here.
func (x *check) expect(ctx context.Context) error {
	length := len(x.in[0].Bytes())
	n, ranks := x.e.problem.Processors(), x.t.Size()
	record := make([]byte, (n+ranks-1)/ranks*length)
	for i, p := range x.in {
		copy(record[i*length:], p.Bytes())
	}
	records, err := x.comm.Allgather(ctx, record)
	if err != nil {
		return err
	}
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
	return nil
}

// observed returns how long fingerprints have taken during the run, on as many cores as there are.
func (x *check) observed() time.Duration {
	return time.Duration(x.took.Load()) / time.Duration(min(len(x.in), runtime.GOMAXPROCS(0)))
}
