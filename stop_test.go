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
	{"random:1", "2^8", 24, 24}, {"dft", "257", 64, 64}, {"vandermonde", "257", 96, 96}, {"lagrange", "257", 48, 48},
	{"cauchy", "2^16", 64, 64}, {"lch", "2^16", 64, 64}, {"cauchy", "2^8", 60, 12}, {"cauchy", "2^16", 64, 16}, {"random:1", "2^8", 3, 90},
}

func mustBuild(t testing.TB, f, name string, k, r int) matrix.Matrix {
	t.Helper()
	spec, err := matrices.ParseSpec(name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := spec.Build(fieldtest.Parse(t, f), k, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newEncoder(t testing.TB, a matrix.Matrix, opts ...Option) *Encoder {
	t.Helper()
	e, err := NewEncoder(t.Context(), a, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// mostApart is how many steps may lie between two polls of a context, which users are told. A step is an operation, a
// coefficient or an element of a message that is added or examined. The test wants polls more often, as its plans are small.
const mostApart, stricter = 100_000, 50

// polledEnough checks that what has taken so many steps has asked its context often enough.
func polledEnough(t *testing.T, name string, steps int, ctx *polled) {
	t.Helper()
	if polls := int(ctx.polls.Load()); polls < 1 || polls*mostApart < steps*stricter {
		t.Errorf("%s: %d steps with %d polls, want one in %d", name, steps, polls, mostApart/stricter)
	}
}

// stepsOf returns the steps to write a schedule: slots, and elements of messages.
func stepsOf(s plan.Schedule) int {
	steps := s.Slots
	for _, r := range s.Rounds {
		for _, x := range r.Sends {
			steps += len(x.Slots)
		}
	}
	return steps
}

// programmed returns the steps to write the programs of a rank, and to compile them, where coefficients count, too.
func programmed(t *testing.T, p plan.Plan, rank, ranks int) (steps int) {
	for proc, end := executor.Hosted(p.Info().Processors, rank, ranks); proc < end; proc++ {
		program, err := p.Program(proc)
		if err != nil {
			t.Fatal(err)
		}
		steps += stepsOf(program.Schedule()) + program.Terms()
	}
	return steps
}

// TestStops ends a context at one poll after the other, which come often enough: planning and compiling, in all algorithms, the check
// of a given plan, a run and a decoding then return its cause, and nothing stays that keeps others from doing the same.
func TestStops(t *testing.T) {
	const symbols = 32
	seen := map[string]bool{}
	for _, c := range stopCases {
		for _, x := range append(algo.Parts(), algo.Algorithm{Name: algo.Auto}) {
			fresh := func() *Encoder { // that knows of no other one, of a matrix that is another: what it has made for its entries stays
				SetCacheBytes(0)
				SetCacheBytes(DefaultCacheBytes)
				return newEncoder(t, mustBuild(t, c.field, c.spec, c.k, c.r), WithAlgorithm(x.Name))
			}
			p, err := fresh().Plan(t.Context(), nil, symbols)
			if err != nil {
				continue
			}
			seen[x.Name] = true
			name := fmt.Sprintf("%s of %s over %s, %d to %d", x.Name, c.spec, c.field, c.k, c.r)
			steps := 0
			for _, class := range p.Classes() {
				steps += stepsOf(p.Schedule(class.Representative))
			}
			polledEnough(t, "planning "+name, steps, stops(t, "planning "+name, func() func(context.Context) error {
				e := fresh()
				return func(ctx context.Context) error { _, err := e.Plan(ctx, nil, symbols); return err }
			}))
			stopCompiling(t, name, p, func() *chosenPlan {
				e := fresh()
				chosen, err := e.choose(t.Context(), e.model(symbols), transport.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				return chosen
			})
			stopsAt(t, "running "+name, []int64{1}, func() func(context.Context) error {
				e := fresh()
				return func(ctx context.Context) error { return runZeros(ctx, e, symbols) }
			})
		}
	}
	for _, x := range algo.Parts() {
		if !seen[x.Name] && !x.Traffic && x.Name != "sparse" { // whose matrices are small
			t.Errorf("no plan of %s", x.Name)
		}
	}
}

// stopCompiling compiles a plan for one rank of one, and for one of many, also in the compact form.
func stopCompiling(t *testing.T, name string, p plan.Plan, choose func() *chosenPlan) {
	n := p.Info().Processors
	for _, ranks := range []int{1, n} {
		name := fmt.Sprintf("compiling %s at %d ranks", name, ranks)
		steps := programmed(t, p, ranks/2, ranks)
		polledEnough(t, name, steps, stops(t, name, func() func(context.Context) error {
			chosen := choose()
			return func(ctx context.Context) error {
				_, err := chosen.executable(ctx, ranks/2, ranks)
				if (err == nil) != (len(chosen.executables) > 0) {
					t.Errorf("%s: %d executables are kept, %v", name, len(chosen.executables), err)
				}
				return err
			}
		}))
		polledEnough(t, name+", compact", steps, stops(t, name+", compact", func() func(context.Context) error {
			return func(ctx context.Context) error { _, err := executor.PrepareCompact(ctx, p, ranks/2, ranks); return err }
		}))
	}
}

// TestStopChecks ends the check of a plan that is given, and a decoding.
func TestStopChecks(t *testing.T) {
	a := mustBuild(t, "2^8", "random:1", 40, 40)
	p, err := newEncoder(t, a, WithAlgorithm("universal")).Plan(t.Context(), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []plan.Plan{p, m} {
		n := stops(t, "a given plan", func() func(context.Context) error {
			return func(ctx context.Context) error { _, err := NewEncoder(ctx, a, WithPlan(given)); return err }
		})
		polledEnough(t, "a given plan", 40*40*40, n)
	}
	code, err := MDS(60, 40)
	if err != nil {
		t.Fatal(err)
	}
	stops(t, "decoding", func() func(context.Context) error {
		packets, coded := make([][]byte, 60), make([][]byte, 40)
		for i := range packets[40:] {
			packets[40+i] = make([]byte, 10)
		}
		for j := range coded {
			coded[j] = make([]byte, 10)
		}
		return func(ctx context.Context) error { _, err := DecodeAll(ctx, code, packets, coded); return err }
	})
}

// stops does some work whose context ends at a poll, and then once more.
func stops(t *testing.T, name string, prepare func() func(context.Context) error) *polled {
	t.Helper()
	counting := newPolled(t, 0)
	if err := prepare()(counting); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	n := counting.polls.Load()
	stopsAt(t, name, slices.Compact([]int64{1, max(1, n/2), n}), prepare)
	return counting
}

func stopsAt(t *testing.T, name string, polls []int64, prepare func() func(context.Context) error) {
	t.Helper()
	for _, end := range polls {
		work := prepare()
		if err := work(newPolled(t, end)); !errors.Is(err, errStopped) {
			t.Fatalf("%s that ends at poll %d of %d: %v, want %v", name, end, polls, err, errStopped)
		}
		if err := work(t.Context()); err != nil {
			t.Fatalf("%s after one that has ended: %v", name, err)
		}
	}
}

// runZeros runs an encoder with all processors here, on packets of so many symbols.
func runZeros(ctx context.Context, e *Encoder, symbols int) error {
	packets := make([]Packet, e.problem.Processors())
	for i := range packets {
		if _, ok := e.problem.Source(i); ok {
			packets[i].Data = make([]byte, symbols*e.matrix.Field().SymbolBytes())
		}
		if _, ok := e.problem.Sink(i); ok {
			packets[i].Result = new([]byte)
		}
	}
	_, err := e.Run(ctx, local.New(1)[0], packets...)
	return err
}

// TestStopOthers checks that a context ends the planning of its own caller only: who waits for the same plan gets it, or
// ends by its own context.
func TestStopOthers(t *testing.T) {
	for _, shared := range []bool{true, false} {
		a := mustBuild(t, "2^16", "cauchy", 96, 96)
		if !shared {
			a = unfixed{a}
		}
		SetCacheBytes(0)
		SetCacheBytes(DefaultCacheBytes)
		e := newEncoder(t, a)
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
