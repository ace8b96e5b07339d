package volley

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"volley/algo"
	"volley/executor"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// A polled context counts who asks whether it has ended. It ends when it is asked for the end-th time, never for 0.
type polled struct {
	context.Context
	cancel context.CancelCauseFunc
	polls  atomic.Int64
	end    int64
	asked  func() // at the first poll
}

var errStopped = errors.New("stopped")

func newPolled(t testing.TB, end int64) *polled {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return &polled{Context: ctx, cancel: cancel, end: end}
}

func (p *polled) Err() error {
	n := p.polls.Add(1)
	if n == 1 && p.asked != nil {
		p.asked()
	}
	if n == p.end {
		p.cancel(errStopped)
	}
	return p.Context.Err()
}

// stopCases are matrices for all algorithms there are.
var stopCases = []struct {
	spec, field string
	k, r        int
}{
	{"random:1", "2^8", 24, 24}, {"random:1", "2^16", 200, 200}, {"random:1", "257", 96, 96}, {"random:1", "babybear", 64, 64},
	{"dft", "257", 256, 256}, {"vandermonde", "257", 192, 192}, {"lagrange", "257", 96, 96}, {"cauchy", "2^16", 384, 384},
	{"lch", "2^16", 192, 192}, {"cauchy", "2^8", 60, 12}, {"cauchy", "2^16", 128, 32}, {"random:1", "2^16", 300, 7},
	{"random:1", "2^8", 3, 90}, {"rs:vandermonde", "2^16", 96, 32}, {"random:1", "goldilocks", 40, 40},
}

func stopMatrix(t testing.TB, spec, name string, k, r int) matrix.Matrix {
	s, err := matrices.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Build(fieldtest.Parse(t, name), k, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// mostApart is how many steps may lie between two polls of a context, which users are told. A step is an operation, a
// coefficient or an element of a message that is added or examined.
const mostApart = 100_000

// stricter is by how much more often the test wants polls, as plans of tests are small.
const stricter = 50

// scheduled returns the steps to write the schedules that a plan is counted by: slots, and elements of messages.
func scheduled(p plan.Plan) (steps int) {
	for _, c := range p.Classes() {
		s := p.Schedule(c.Representative)
		steps += s.Slots
		for _, r := range s.Rounds {
			for _, x := range r.Sends {
				steps += len(x.Slots)
			}
		}
	}
	return steps
}

// programmed returns the steps to write programs, and to compile them: coefficients, slots, and elements of messages.
func programmed(t testing.TB, p plan.Plan, first, end int) (steps int) {
	for proc := first; proc < end; proc++ {
		program, err := p.Program(proc)
		if err != nil {
			t.Fatal(err)
		}
		s := program.Schedule()
		steps += s.Slots + program.Terms()
		for _, r := range s.Rounds {
			for _, x := range r.Sends {
				steps += len(x.Slots)
			}
		}
	}
	return steps
}

// TestPolls counts how often planning and compiling ask their context whether it has ended, in all algorithms.
func TestPolls(t *testing.T) {
	enough := func(what string, steps int, ctx *polled) {
		t.Helper()
		if polls := int(ctx.polls.Load()); polls < 1 || polls*mostApart < steps*stricter {
			t.Errorf("%s: %d steps with %d polls, want one in %d", what, steps, polls, mostApart/stricter)
		}
	}
	seen := map[string]bool{}
	for _, c := range stopCases {
		a := stopMatrix(t, c.spec, c.field, c.k, c.r)
		for _, ports := range []int{1, 3} {
			if ports > 1 && c.k > 100 {
				continue // takes long
			}
			for _, x := range algo.Parts() {
				p := &algo.Problem{Matrix: a, Ports: ports}
				if err := p.Prepare(); err != nil {
					t.Fatal(err)
				}
				ctx := newPolled(t, 0)
				p.Context = ctx
				what := fmt.Sprintf("%s of %s over %s, %d to %d, p = %d", x.Name, c.spec, c.field, c.k, c.r, ports)
				list, _ := algo.CandidatesAmong([]algo.Algorithm{x}, p, sim.Model{Beta: 1000, Tau: 1e-9, Bytes: 1 << 20})
				steps := 0
				for _, q := range list {
					steps += scheduled(q.Plan)
				}
				enough("planning "+what, steps, ctx)
				if len(list) == 0 {
					continue
				}
				seen[x.Name] = true
				q := list[len(list)-1].Plan
				n := q.Info().Processors
				for _, ranks := range []int{1, n} {
					if ranks == 1 && q.Info().PieceCount()*n > 2_000 {
						continue // takes long
					}
					first, end := executor.Hosted(n, ranks/2, ranks)
					steps := programmed(t, q, first, end)
					for _, compact := range []bool{false, true} {
						ctx := newPolled(t, 0)
						var err error
						if compact {
							_, err = executor.PrepareCompact(ctx, q, ranks/2, ranks)
						} else {
							_, err = executor.Prepare(ctx, q, ranks/2, ranks)
						}
						if err != nil {
							t.Fatal(err)
						}
						enough(fmt.Sprintf("compiling %s at %d ranks, compact %v", what, ranks, compact), steps, ctx)
					}
				}
			}
		}
	}
	for _, x := range algo.Parts() {
		if !seen[x.Name] {
			t.Errorf("no plan of %s", x.Name)
		}
	}
}

// sampled returns some of the numbers 1 to n, the first and the last ones among them.
func sampled(n int64) []int64 {
	list := []int64{1, n / 7, n / 2, n - 1, n}
	list = slices.DeleteFunc(list, func(i int64) bool { return i < 1 || i > n })
	slices.Sort(list)
	return slices.Compact(list)
}

// TestStops ends a context at one poll after the other: planning and compiling then return its cause, and nothing stays
// that keeps others from planning and compiling.
func TestStops(t *testing.T) {
	for _, c := range stopCases {
		for _, algorithm := range []string{algo.Auto, "universal", "exchange", "split"} {
			if c.k != c.r && algorithm != algo.Auto {
				continue
			}
			if c.k > 200 || algorithm != algo.Auto && c.k > 64 {
				continue // takes long
			}
			a := stopMatrix(t, c.spec, c.field, c.k, c.r)
			what := fmt.Sprintf("%s of %s over %s, %d to %d", algorithm, c.spec, c.field, c.k, c.r)
			options := []Option{WithAlgorithm(algorithm)}
			fresh := func() *Encoder { // that knows of no other one
				SetCacheBytes(0)
				SetCacheBytes(DefaultCacheBytes)
				e, err := NewEncoder(t.Context(), a, options...)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			symbols := int64(1 << 10)
			e := fresh()
			counting := newPolled(t, 0)
			want, err := e.Plan(counting, nil, symbols)
			if err != nil {
				t.Logf("%s: %v", what, err)
				continue
			}
			for _, end := range sampled(counting.polls.Load()) {
				e := fresh()
				if _, err := e.Plan(newPolled(t, end), nil, symbols); err != errStopped {
					t.Fatalf("%s: planning that ends at poll %d of %d: %v, want %v", what, end, counting.polls.Load(), err, errStopped)
				}
				got, err := e.Plan(t.Context(), nil, symbols)
				if err != nil || got.Info().Name() != want.Info().Name() {
					t.Fatalf("%s: after planning that has ended: %v, %v, want %v", what, got, err, want.Info())
				}
			}
			e = fresh()
			chosen, err := e.choose(t.Context(), e.model(symbols), transport.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			counting = newPolled(t, 0)
			if _, err := chosen.executable(counting, 0, 1); err != nil {
				t.Fatal(err)
			}
			for _, end := range sampled(counting.polls.Load()) {
				// The matrix is another one each time: what it has made for its entries stays.
				a = stopMatrix(t, c.spec, c.field, c.k, c.r)
				e := fresh()
				chosen, err := e.choose(t.Context(), e.model(symbols), transport.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := chosen.executable(newPolled(t, end), 0, 1); err != errStopped {
					t.Fatalf("%s: compiling that ends at poll %d of %d: %v, want %v", what, end, counting.polls.Load(), err, errStopped)
				}
				if len(chosen.executables) > 0 {
					t.Fatalf("%s: an executable is kept", what)
				}
				if _, err := chosen.executable(t.Context(), 0, 1); err != nil {
					t.Fatalf("%s: after compiling that has ended: %v", what, err)
				}
			}
			stopRun(t, what, fresh())
		}
	}
}

// stopRun ends a run before it begins, and checks that the encoder then runs.
func stopRun(t *testing.T, what string, e *Encoder) {
	t.Helper()
	bytes := int64(e.matrix.Field().SymbolBytes())
	run := func(ctx context.Context) error {
		packets := make([]Packet, e.problem.Processors())
		for i := range packets {
			if _, ok := e.problem.Source(i); ok {
				packets[i].Data = make([]byte, 32*bytes)
				packets[i].Data[0] = byte(i % 2)
			}
			if _, ok := e.problem.Sink(i); ok {
				packets[i].Result = new([]byte)
			}
		}
		_, err := e.Run(ctx, local.New(1)[0], packets...)
		return err
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	if err := run(ended); !errors.Is(err, errStopped) {
		t.Fatalf("%s: a run whose context has ended: %v, want %v", what, err, errStopped)
	}
	c, err := e.choose(t.Context(), e.model(32*bytes/int64(e.matrix.Field().SymbolBytes())), transport.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.executables) > 0 {
		t.Errorf("%s: a run whose context has ended has compiled", what)
	}
	if err := run(t.Context()); err != nil {
		t.Fatalf("%s: a run after that: %v", what, err)
	}
}

// TestStopOthers checks that a context ends the planning of its own caller only: who waits for the same plan gets it, or
// ends by its own context.
func TestStopOthers(t *testing.T) {
	for _, shared := range []bool{true, false} {
		a := stopMatrix(t, "cauchy", "2^16", 96, 96)
		if !shared {
			a = unfixed{a}
		}
		SetCacheBytes(0)
		SetCacheBytes(DefaultCacheBytes)
		e, err := NewEncoder(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		first := newPolled(t, 5)
		waiting := make(chan error, 1)
		first.asked = func() { // in the middle of planning
			ended, cancel := context.WithCancelCause(t.Context())
			cancel(errStopped)
			if _, err := e.Plan(ended, nil, 7); err != errStopped {
				t.Errorf("shared %v: who waits with a context that has ended: %v, want %v", shared, err, errStopped)
			}
			second := &polled{Context: t.Context(), cancel: func(error) {}}
			began := make(chan struct{})
			go func() {
				close(began)
				_, err := e.Plan(second, nil, 7)
				waiting <- err
			}()
			<-began
		}
		if _, err := e.Plan(first, nil, 7); err != errStopped {
			t.Errorf("shared %v: %v, want %v", shared, err, errStopped)
		}
		if err := <-waiting; err != nil {
			t.Errorf("shared %v: who waits for the plan: %v", shared, err)
		}
	}
}

// An unfixed matrix may change, for all that is known of it.
type unfixed struct{ matrix.Matrix }

// TestStopGiven checks that a context ends the check of a plan that is given.
func TestStopGiven(t *testing.T) {
	a := stopMatrix(t, "random:1", "2^8", 40, 40)
	p, err := algo.Choose("universal", mustProblem(t, a), sim.Model{Beta: 1, Tau: 1e-9, Bytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []plan.Plan{p, m} {
		counting := newPolled(t, 0)
		if _, err := NewEncoder(counting, a, WithPlan(given)); err != nil {
			t.Fatal(err)
		}
		polls, steps := counting.polls.Load(), int64(40*40*40)
		if polls*mostApart < steps*stricter {
			t.Errorf("%T: %d polls", given, polls)
		}
		for _, end := range sampled(polls) {
			if _, err := NewEncoder(newPolled(t, end), a, WithPlan(given)); err != errStopped {
				t.Errorf("%T, that ends at poll %d of %d: %v, want %v", given, end, polls, err, errStopped)
			}
		}
	}
}

func mustProblem(t testing.TB, a matrix.Matrix) *algo.Problem {
	p, err := algo.NewProblem(a, 1, algo.Natural)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDecodeAllStopped ends a decoding before it begins, and while it works out how lost packets come back: before it looks
// at the lengths, which are wrong.
func TestDecodeAllStopped(t *testing.T) {
	a, err := MDS(60, 40)
	if err != nil {
		t.Fatal(err)
	}
	packets, coded := make([][]byte, 60), make([][]byte, 40)
	for i := 40; i < len(packets); i++ {
		packets[i] = make([]byte, 20)
	}
	for j := range coded {
		coded[j] = make([]byte, 10)
	}
	for _, end := range []int64{1, 30} {
		if _, err := DecodeAll(newPolled(t, end), a, packets, coded); !errors.Is(err, errStopped) {
			t.Errorf("a decoding that ends at poll %d: %v, want %v", end, err, errStopped)
		}
	}
}
