package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/delay"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/plan"
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
	packets := make([][]byte, len(lengths))
	for k, n := range lengths {
		packets[k] = make([]byte, n*f.SymbolBytes())
		field.FillRandom(f, packets[k], rng.Uint64)
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

// packet is an input and an output, which check that they are read and written in ascending order. Its memory is that of a
// reader, or what is written.
type packet struct {
	data []byte
	next int64
}

func (p *packet) ReadAt(b []byte, offset int64) (int, error) {
	if offset < p.next {
		return 0, fmt.Errorf("read at %d after %d bytes", offset, p.next)
	}
	p.next = offset + int64(len(b))
	return bytes.NewReader(p.data).ReadAt(b, offset)
}

func (p *packet) WriteAt(b []byte, offset int64) (int, error) {
	if offset != int64(len(p.data)) {
		return 0, fmt.Errorf("written at %d after %d bytes", offset, len(p.data))
	}
	p.data = append(p.data, b...)
	return len(b), nil
}

// endless is a packet of zeros, and a place for any.
type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error)  { clear(p); return len(p), nil }
func (endless) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func zeros() []executor.Input    { return []executor.Input{{Reader: endless{}}} }
func discard() []executor.Output { return []executor.Output{{Writer: endless{}}} }

// A run is a plan on packets, and what came of it.
type run struct {
	plan           plan.Plan
	packets        [][]byte // of the processors in order, as many each as it has inputs
	bytes, segment int

	ranks    int  // that the processors live at; 0: one each
	inMemory bool // where packets and results lie

	wrap func(transport.Transport) transport.Transport // unless nil
	job  func(rank int, job *executor.Job)             // unless nil, changes a job

	outputs [][]*packet         // of every processor
	traffic []*executor.Traffic // of every processor
	errs    []error             // of every rank
}

// newRun returns a run of many segments at 8 processors.
func newRun(t testing.TB) *run {
	f := fieldtest.Parse(t, "2^8")
	return &run{
		plan: compile(t, "universal", randomMatrix(t, f, 8), 1), packets: randomPackets(f, 1, equal(8, 100)...),
		bytes: 100, segment: 10,
	}
}

// do runs every rank and returns when all have ended.
func (r *run) do(ctx context.Context) {
	k := r.plan.Info().Processors
	ranks := r.ranks
	if ranks == 0 {
		ranks = k
	}
	r.outputs = make([][]*packet, k)
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
				in := executor.Input{Reader: &packet{data: packets[0]}}
				if r.inMemory {
					in = executor.Input{Memory: packets[0]}
				}
				job.Inputs, packets = append(job.Inputs, in), packets[1:]
			}
			for range len(s.Outputs) / pieces {
				out := new(packet)
				r.outputs[proc] = append(r.outputs[proc], out)
				if job.Outputs = append(job.Outputs, executor.Output{Writer: out}); r.inMemory {
					out.data = make([]byte, r.bytes)
					job.Outputs[len(job.Outputs)-1] = executor.Output{Memory: out.data}
				}
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

// mustDo is do, where no rank may fail.
func (r *run) mustDo(t testing.TB) {
	t.Helper()
	if r.do(t.Context()); errors.Join(r.errs...) != nil {
		t.Fatal(errors.Join(r.errs...))
	}
}

// check compares all outputs with the packets wanted.
func (r *run) check(t testing.TB, want [][]byte) {
	t.Helper()
	for proc, outputs := range r.outputs {
		for o, out := range outputs {
			if j := r.plan.Column(proc, o*r.plan.Info().PieceCount()) / r.plan.Info().PieceCount(); !bytes.Equal(out.data, want[j]) {
				t.Fatalf("processor %d, output %d: got %x, want %x", proc, o, out.data, want[j])
			}
		}
	}
}

// transferMatrix returns the matrix that p computes.
func transferMatrix(t testing.TB, p plan.Plan) matrix.Matrix {
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

// relay is a plan in which processor 0 hears from 1 and 2 through two ports, and passes on what
// it heard, to 3 and 4.
func relay(f field.Field) *plan.Materialized {
	pass := func(proc, dst, port int) *plan.Program {
		return &plan.Program{Proc: proc, Inputs: 1, Rounds: []plan.Round{{Sends: []plan.Send{{Dst: dst, Port: port, Slots: []int{0}}}}, {}}}
	}
	hear := func(proc, port int) *plan.Program {
		return &plan.Program{Proc: proc, Rounds: []plan.Round{{}, {Recvs: []plan.Recv{{Src: 0, Port: port, Count: 1}}}}, Outputs: []int{0}}
	}
	return &plan.Materialized{
		Common: plan.Info{Algorithm: "relay", Field: f, Processors: 5, Ports: 2, Rows: 2, Columns: 2, Phases: []plan.Phase{{Name: "there", Rounds: 2}}},
		Programs: []*plan.Program{
			{Proc: 0, Rounds: []plan.Round{
				{Recvs: []plan.Recv{{Src: 1, Port: 0, Count: 1}, {Src: 2, Port: 1, Count: 1}}},
				{
					Compute: []plan.Combination{{{Slot: 0, Coef: field.Code(2)}}},
					Sends:   []plan.Send{{Dst: 3, Port: 0, Slots: []int{2}}, {Dst: 4, Port: 1, Slots: []int{1}}},
				},
			}},
			pass(1, 0, 0), pass(2, 0, 1), hear(3, 0), hear(4, 1),
		},
		Rows: [][]int{{}, {0}, {1}, {}, {}}, Columns: [][]int{{}, {}, {}, {0}, {1}},
	}
}

// twice is a plan that sends an element of two twice and adds up the two, where outputs are sums that may be one product of it, or zero.
func twice(f field.Field) *plan.Materialized {
	minus := f.Sub(field.Element{}, field.One)
	term := func(slot int, coef field.Element) plan.Term { return plan.Term{Slot: slot, Coef: coef} }
	return &plan.Materialized{
		Common: plan.Info{Algorithm: "by hand", Field: f, Processors: 2, Ports: 1, Rows: 2, Columns: 4, Phases: []plan.Phase{{Name: "there", Rounds: 1}}},
		Programs: []*plan.Program{
			{Proc: 0, Inputs: 2, Rounds: []plan.Round{{Sends: []plan.Send{{Dst: 1, Slots: []int{0, 0, 1}}}}}},
			{
				Proc: 1, Rounds: []plan.Round{{Recvs: []plan.Recv{{Src: 0, Count: 3}}}}, Outputs: []int{3, 4, 5, 2},
				Compute: []plan.Combination{
					{term(0, field.Code(3)), term(1, field.Code(7))},
					{term(0, field.One), term(1, minus)},
					{term(0, field.Code(2)), term(1, field.Code(2)), term(2, field.One)},
				},
			},
		},
		Rows: [][]int{{0, 1}, {}}, Columns: [][]int{{}, {0, 1, 2, 3}},
	}
}
