package executor_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/internal/delay"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
	"volley/verify"
)

// delayed returns a transport whose messages are so late.
func delayed(t transport.Transport, d time.Duration) transport.Transport {
	return delay.New(context.Background(), t, func(*transport.Transfer) time.Duration { return d })
}

func randomMatrix(t testing.TB, f field.Field, k int) matrix.Matrix {
	t.Helper()
	return matrixtest.Random(t, f, k, uint64(k))
}

// compile returns the plan of the named algorithm.
func compile(t testing.TB, name string, a matrix.Matrix, ports int) plan.Plan {
	t.Helper()
	algorithm, err := algo.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := algorithm.Compile(a, ports)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// randomPackets returns a packet of the given number of symbols for each length.
func randomPackets(f field.Field, seed uint64, lengths ...int) [][]byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	q := f.Order().Uint64() // its low bits, of a large field
	packets := make([][]byte, len(lengths))
	for k, n := range lengths {
		packets[k] = make([]byte, n*f.SymbolBytes())
		for i := range n {
			field.PutSymbol(f, packets[k][i*f.SymbolBytes():], field.Code(rng.Uint64N(q)))
		}
	}
	return packets
}

// equal returns k packets' lengths.
func equal(k, symbols int) []int {
	lengths := make([]int, k)
	for i := range lengths {
		lengths[i] = symbols
	}
	return lengths
}

// product returns the packets of the given number of symbols that x·A consists
// of, by the schoolbook.
func product(a matrix.Matrix, x [][]byte, symbols int) [][]byte {
	f := a.Field()
	size := f.SymbolBytes()
	coded := make([][]byte, a.Cols())
	for j := range coded {
		sums := make([]field.Element, symbols)
		for i := range x {
			c := a.At(i, j)
			if c.IsZero() {
				continue
			}
			for s := range min(symbols, len(x[i])/size) {
				sums[s] = f.Add(sums[s], f.Mul(c, field.Symbol(f, x[i][s*size:])))
			}
		}
		coded[j] = make([]byte, symbols*size)
		for s, sum := range sums {
			field.PutSymbol(f, coded[j][s*size:], sum)
		}
	}
	return coded
}

// buffer is an output that checks that it is written in ascending order.
type buffer struct{ bytes.Buffer }

func (b *buffer) WriteAt(p []byte, offset int64) (int, error) {
	if offset != int64(b.Len()) {
		return 0, fmt.Errorf("written at %d after %d bytes", offset, b.Len())
	}
	return b.Write(p)
}

// A run is a plan on packets, and what came of it.
type run struct {
	plan           plan.Plan
	packets        [][]byte // of the processors in order, as many each as it has inputs
	bytes, segment int

	ranks int // that the processors live at; 0: one each

	wrap func(transport.Transport) transport.Transport // unless nil
	job  func(rank int, job *executor.Job)             // unless nil, changes a job

	outputs [][]*buffer         // of every processor
	traffic []*executor.Traffic // of every processor
	errs    []error             // of every rank
}

// do runs every rank and returns when all have ended.
func (r *run) do(ctx context.Context) {
	k := r.plan.Info().Processors
	ranks := r.ranks
	if ranks == 0 {
		ranks = k
	}
	r.outputs = make([][]*buffer, k)
	r.traffic = make([]*executor.Traffic, k)
	r.errs = make([]error, ranks)
	packets := r.packets
	var wg sync.WaitGroup
	for rank, end := range local.New(ranks) {
		job := executor.Job{Bytes: int64(r.bytes), Segment: int64(r.segment), Ahead: r.segment%2 == 0}
		pieces := r.plan.Info().PieceCount()
		first, last := executor.Hosted(k, rank, ranks)
		for proc := first; proc < last; proc++ {
			s := r.plan.Schedule(proc)
			for range s.Inputs / pieces {
				job.Inputs = append(job.Inputs, executor.Input{Reader: bytes.NewReader(packets[0])})
				packets = packets[1:]
			}
			for range len(s.Outputs) / pieces {
				out := new(buffer)
				r.outputs[proc] = append(r.outputs[proc], out)
				job.Outputs = append(job.Outputs, executor.Output{Writer: out})
			}
		}
		var err error
		if job.Executable, err = executor.Prepare(context.Background(), r.plan, rank, ranks); err != nil {
			panic(err) // tests of wrong plans compile them themselves
		}
		if r.job != nil {
			r.job(rank, &job)
		}
		var tr transport.Transport = end
		if r.wrap != nil {
			tr = r.wrap(tr)
		}
		wg.Go(func() {
			var traffic []executor.Traffic
			traffic, r.errs[rank] = executor.Run(ctx, tr, job)
			for i := range traffic {
				r.traffic[first+i] = &traffic[i]
			}
		})
	}
	wg.Wait()
}

// mustDo is do, where no processor may fail.
func (r *run) mustDo(t testing.TB) {
	t.Helper()
	r.do(t.Context())
	for rank, err := range r.errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

// check compares output 0 of every processor with the packets wanted.
func (r *run) check(t testing.TB, want [][]byte) {
	t.Helper()
	for proc, outputs := range r.outputs {
		if got := outputs[0].Bytes(); !bytes.Equal(got, want[proc]) {
			t.Fatalf("processor %d: got %x, want %x", proc, got, want[proc])
		}
	}
}

// A watched transport spoils the memory that a rank posts to be received into, and sees whether
// the rank changes what is under way.
type watched struct {
	transport.Transport
	t testing.TB

	mu   sync.Mutex
	sent map[*transport.Transfer][][]byte // copies of the parts of sends under way
	open int                              // transfers under way
}

type watchedQueue struct {
	transport.Queue
	w *watched
}

func newWatched(t testing.TB, below transport.Transport) *watched {
	return &watched{Transport: below, t: t, sent: map[*transport.Transfer][][]byte{}}
}

func (w *watched) NewQueue() transport.Queue { return watchedQueue{w.Transport.NewQueue(), w} }

func (q watchedQueue) Post(transfers ...*transport.Transfer) {
	q.w.mu.Lock()
	for _, t := range transfers {
		q.w.open++
		var parts [][]byte
		for _, part := range t.Parts {
			if t.Receive {
				for i := range part {
					part[i] = 0xA5
				}
			}
			parts = append(parts, bytes.Clone(part))
		}
		if !t.Receive {
			q.w.sent[t] = parts
		}
	}
	q.w.mu.Unlock()
	q.Queue.Post(transfers...)
}

func (q watchedQueue) Wait(ctx context.Context) (*transport.Transfer, error) {
	t, err := q.Queue.Wait(ctx)
	if t == nil {
		return t, err
	}
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	q.w.open--
	for i, part := range q.w.sent[t] {
		if !bytes.Equal(part, t.Parts[i]) {
			q.w.t.Errorf("rank %d: part %d of a message to rank %d, %v, was changed under way", q.w.Rank(), i, t.Rank, t.Tag)
		}
	}
	delete(q.w.sent, t)
	return t, err
}

// transferMatrix returns the matrix that p computes.
func transferMatrix(t testing.TB, p plan.Plan) *matrix.Dense {
	t.Helper()
	m, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	memories, err := verify.Trace(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	a := matrix.NewDense(m.Common.Field, m.Common.Rows, m.Common.Columns)
	for k, memory := range memories {
		for o, slot := range m.Programs[k].Outputs {
			for i := range m.Common.Rows {
				a.Set(i, m.Column(k, o), memory.Coefficient(slot, i))
			}
		}
	}
	return a
}

// allgather returns a plan whose output i at every processor is the packet of processor i.
func allgather(t testing.TB, f field.Field, processors, ports int) plan.Plan {
	t.Helper()
	p := &algo.Problem{Traffic: &algo.Traffic{Field: f}, Ports: ports}
	for i := range processors {
		p.Traffic.Inputs, p.Traffic.Outputs = append(p.Traffic.Inputs, 1), append(p.Traffic.Outputs, processors)
		w := algo.Codeword{Sources: []algo.Packet{{Proc: i}}}
		for k := range processors {
			w.Sinks = append(w.Sinks, algo.Packet{Proc: k, Index: i})
			w.Coefficients = append(w.Coefficients, []field.Element{field.One})
		}
		p.Traffic.Codewords = append(p.Traffic.Codewords, w)
	}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	q, err := algo.Choose("relay", p, sim.Model{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}
