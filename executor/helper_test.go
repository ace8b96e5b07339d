package executor_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/transport"
	"volley/transport/local"
)

func randomMatrix(t testing.TB, f field.Field, k int) matrix.Matrix {
	t.Helper()
	a, err := matrix.Random(f, k, k, uint64(k))
	if err != nil {
		t.Fatal(err)
	}
	return a
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
		coded[j] = make([]byte, symbols*size)
		for s := range symbols {
			var sum field.Element
			for i := range x {
				if s*size < len(x[i]) {
					sum = f.Add(sum, f.Mul(a.At(i, j), field.Symbol(f, x[i][s*size:])))
				}
			}
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
			for range s.Outputs / pieces {
				out := new(buffer)
				r.outputs[proc] = append(r.outputs[proc], out)
				job.Outputs = append(job.Outputs, executor.Output{Writer: out})
			}
		}
		var err error
		if job.Executable, err = executor.Prepare(r.plan, rank, ranks); err != nil {
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

// A copying transport hands on copies of what it receives, as a network does,
// and spoils them once they are released. It watches the rank above it.
type copying struct {
	transport.Transport
	t testing.TB

	mu      sync.Mutex
	sending map[*byte]int // first bytes of the parts under way
	open    int           // sends not waited for, and messages not released
	held    int           // bytes received and not released
	most    int           // of held
}

func newCopying(t testing.TB, below transport.Transport) *copying {
	return &copying{Transport: below, t: t, sending: map[*byte]int{}}
}

func (c *copying) note(parts [][]byte, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	for _, part := range parts {
		if len(part) > 0 {
			c.sending[&part[0]] += n
		}
	}
}

func (c *copying) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	c.note(parts, 1)
	return &copyingSend{c.Transport.Send(dst, tag, parts), c, parts}
}

func (c *copying) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	return &copyingReceive{c.Transport.Receive(src, tag, lengths), c}
}

type copyingSend struct {
	transport.Sending
	c     *copying
	parts [][]byte
}

func (s *copyingSend) Wait(ctx context.Context) error {
	err := s.Sending.Wait(ctx)
	s.c.note(s.parts, -1)
	return err
}

type copyingReceive struct {
	transport.Receiving
	c *copying
}

func (r *copyingReceive) Wait(ctx context.Context) (transport.Message, error) {
	m, err := r.Receiving.Wait(ctx)
	if err != nil {
		return m, err
	}
	c, size := r.c, 0
	parts := make([][]byte, len(m.Parts))
	for i, part := range m.Parts {
		parts[i] = bytes.Clone(part)
		size += len(part)
	}
	m.Release()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.held += size
	c.most = max(c.most, c.held)
	return transport.Message{Parts: parts, Release: func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
		c.held -= size
		for _, part := range parts {
			if len(part) > 0 && c.sending[&part[0]] > 0 {
				c.t.Errorf("rank %d released a message of which it is still sending a part", c.Rank())
			}
			for i := range part {
				part[i] = 0xA5
			}
		}
	}}, nil
}
