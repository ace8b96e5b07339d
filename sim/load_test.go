package sim_test

import (
	"context"
	"errors"
	"testing"

	"volley/algo/algotest"
	"volley/field"
	"volley/plan"
	"volley/sim"
)

func TestLoadByHand(t *testing.T) {
	p := uneven(t)
	l, err := sim.LoadOf(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := sim.Load{
		Sent:     sim.Spread{Most: 5, Busiest: 0, Total: 6, Mean: 3},
		Received: sim.Spread{Most: 5, Busiest: 1, Total: 6, Mean: 3},
		Messages: sim.Spread{Most: 2, Busiest: 0, Total: 3, Mean: 1.5},
		Memory:   sim.Spread{Most: 8, Busiest: 1, Total: 11, Mean: 5.5}, // 1+1+1 and 1+3+1+2+1
	}
	if l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
	w, err := sim.WorkOf(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	// Processor 0 needs x0 to the end, and next to it what it has received, or the result: 2.
	// Processor 1 receives 3 next to x1, and needs none of them later: 4.
	work := sim.Work{
		MultiplyAdds: sim.Spread{Most: 4, Busiest: 1, Total: 5, Mean: 2.5},
		Live:         sim.Spread{Most: 4, Busiest: 1, Total: 6, Mean: 3},
	}
	if w != work {
		t.Errorf("%+v, want %+v", w, work)
	}
}

// TestBusiest checks that of processors that have as much it is the first.
func TestBusiest(t *testing.T) {
	l, err := sim.LoadOf(context.Background(), messages(t, 3, [][3]int{{0, 1, 1}}, [][3]int{{1, 2, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	if want := (sim.Spread{Most: 1, Busiest: 0, Total: 2, Mean: 2.0 / 3}); l.Sent != want || l.Messages != want {
		t.Errorf("sent %+v in %+v, want %+v", l.Sent, l.Messages, want)
	}
	if want := (sim.Spread{Most: 1, Busiest: 1, Total: 2, Mean: 2.0 / 3}); l.Received != want {
		t.Errorf("received %+v, want %+v", l.Received, want)
	}
}

func TestLiveByHand(t *testing.T) {
	sum := plan.Combination{{Slot: 0, Coef: field.One}}
	for _, c := range []struct {
		name string
		prog plan.Program
		want int
	}{
		{"nothing", plan.Program{}, 0},
		{"a packet that is the result", plan.Program{Inputs: 1, Outputs: []int{0}}, 1},
		{"a packet for nothing", plan.Program{Inputs: 1}, 1},
		{"two results next to what they are made of", plan.Program{Inputs: 1, Compute: []plan.Combination{sum, sum}, Outputs: []int{1, 2}}, 3},
		{"two that are sent next to what is received", plan.Program{Inputs: 1, Rounds: []plan.Round{{
			Compute: []plan.Combination{sum, sum},
			Sends:   []plan.Send{{Slots: []int{1, 2}}},
			Recvs:   []plan.Recv{{Count: 2}},
		}}}, 4},
	} {
		m := &plan.Materialized{Common: plan.Info{Processors: 1}, Programs: []*plan.Program{&c.prog}}
		w, err := sim.WorkOf(context.Background(), m)
		if err != nil || w.Live.Most != c.want {
			t.Errorf("%s: %d live, %v, want %d", c.name, w.Live.Most, err, c.want)
		}
	}
}

// TestLoadOfKnownSchedules has formulas: an allgather keeps all, and forgets nothing
// of it, nor does a ring, as everybody needs every packet in the end; a direct exchange
// forgets what it has scaled and sent.
func TestLoadOfKnownSchedules(t *testing.T) {
	const k = 16
	for _, c := range []struct {
		name                        string
		sent, memory, live, compute int
	}{
		{"bruck-allgather", k - 1, k + 1, k + 1, k},
		{"ring-allgather", k - 1, k + 1, k + 1, k},
		{"direct", k - 1, 1 + 2*(k-1) + 1, k + 1, 0},
		{"universal", 6, 0, 0, 0},
		{"central", 30, 0, 0, k * k},
	} {
		p := algotest.Compile(t, c.name, "2^8", "cauchy", k, 1)
		l, err := sim.LoadOf(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		w, err := sim.WorkOf(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if l.Sent.Total != l.Received.Total {
			t.Errorf("%s: %v sent and %v received", c.name, l.Sent.Total, l.Received.Total)
		}
		if c.name != "central" && (l.Sent.Most != c.sent || l.Received.Most != c.sent || l.Sent.Mean != float64(c.sent)) {
			t.Errorf("%s: sent %+v, received %+v, want %d", c.name, l.Sent, l.Received, c.sent)
		}
		if c.memory > 0 && l.Memory.Most != c.memory {
			t.Errorf("%s: memory %d, want %d", c.name, l.Memory.Most, c.memory)
		}
		if c.live > 0 && w.Live.Most != c.live {
			t.Errorf("%s: live %d, want %d", c.name, w.Live.Most, c.live)
		}
		if c.compute > 0 && w.MultiplyAdds.Most != c.compute {
			t.Errorf("%s: %d multiply-adds, want %d", c.name, w.MultiplyAdds.Most, c.compute)
		}
		if w.Live.Most > l.Memory.Most || w.Live.Total > l.Memory.Total {
			t.Errorf("%s: live %+v exceeds memory %+v", c.name, w.Live, l.Memory)
		}
		if c3, err := sim.MultiplyAdds(p); err != nil || c3 != w.MultiplyAdds.Most {
			t.Errorf("%s: C3 %d, %v, and %d", c.name, c3, err, w.MultiplyAdds.Most)
		}
	}
}

// TestLoadByClasses compares one processor of each class with all of them.
func TestLoadByClasses(t *testing.T) {
	for _, c := range []struct {
		name, field, spec string
		k, ports          int
	}{
		{"central", "2^8", "random:1", 27, 1}, {"central", "2^8", "random:1", 40, 3},
		{"universal", "2^8", "random:1", 27, 2}, {"dft", "257", "dft", 16, 1}, {"lagrange", "257", "lagrange", 24, 1},
	} {
		p := algotest.Compile(t, c.name, c.field, c.spec, c.k, c.ports)
		all, err := plan.Materialize(p)
		if err != nil {
			t.Fatal(err)
		}
		a, errA := sim.LoadOf(context.Background(), p)
		b, errB := sim.LoadOf(context.Background(), all)
		for _, l := range []*sim.Load{&a, &b} {
			l.Sent.Busiest, l.Received.Busiest, l.Messages.Busiest, l.Memory.Busiest = 0, 0, 0, 0
		}
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s K=%d p=%d: by class %+v, %v; all %+v, %v", c.name, c.k, c.ports, a, errA, b, errB)
		}
	}
}

// TestLoadOfAMillion takes what must not take memory in proportion to K times rounds.
func TestLoadOfAMillion(t *testing.T) {
	const k = 1 << 20
	p := algotest.Compile(t, "dft", "goldilocks", "dft", k, 1)
	l, err := sim.LoadOf(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.WorkOf(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if l.Sent.Most < 20 || l.Sent.Most > 21 || l.Sent.Mean > 21 || w.Live.Most > 3 || w.MultiplyAdds.Most != 60 {
		t.Errorf("%+v, %+v", l, w)
	}
	universal := algotest.Compile(t, "universal", "2^16", "random:1", 1_000_000, 1)
	if l, err = sim.LoadOf(context.Background(), universal); err != nil || l.Sent.Most != sim.Count(universal).C2 {
		t.Errorf("universal: %+v, %v, want %d sent", l.Sent, err, sim.Count(universal).C2)
	}
	central := algotest.Compile(t, "central", "2^16", "random:1", 1_000_000, 1)
	if l, err = sim.LoadOf(context.Background(), central); err != nil || l.Received.Most != 999_999 || l.Received.Busiest != 0 {
		t.Errorf("central: %+v, %v", l.Received, err)
	}
	if _, err := sim.WorkOf(context.Background(), central); !errors.Is(err, sim.ErrTooLarge) {
		t.Errorf("10^12 multiply-adds at one processor: %v, want %v", err, sim.ErrTooLarge)
	}
}

// altered is a plan whose schedules are changed before they are looked at.
type altered struct {
	plan.Plan
	schedule func(plan.Schedule) plan.Schedule
}

func (a altered) Schedule(proc int) plan.Schedule { return a.schedule(a.Plan.Schedule(proc)) }

func TestWorkErrors(t *testing.T) {
	for terms, want := range map[int]error{1 << 24: nil, 1<<24 + 1: sim.ErrTooLarge} {
		p := altered{uneven(t), func(s plan.Schedule) plan.Schedule { s.Terms = terms; return s }}
		if _, err := sim.WorkOf(context.Background(), p); !errors.Is(err, want) {
			t.Errorf("%d terms: %v, want %v", terms, err, want)
		}
	}
	if _, err := sim.WorkOf(context.Background(), failing{uneven(t)}); !errors.Is(err, errSingular) {
		t.Errorf("%v, want the error of the program", err)
	}
}

// TestStops checks that nothing is looked at when the context ends before, and at most
// 1024 processors after.
func TestStops(t *testing.T) {
	const k = 3000
	all := messages(t, k)
	for _, c := range []struct {
		name   string
		before int // schedules that are looked at in any case
		do     func(context.Context, plan.Plan) error
	}{
		{"LoadOf", 0, func(ctx context.Context, p plan.Plan) error { _, err := sim.LoadOf(ctx, p); return err }},
		{"WorkOf", 0, func(ctx context.Context, p plan.Plan) error { _, err := sim.WorkOf(ctx, p); return err }},
	} {
		for _, more := range []int{0, 1} {
			ctx, cancel := context.WithCancel(context.Background())
			looks := 0
			stop := func() {
				if looks == c.before+more {
					cancel()
				}
			}
			stop()
			err := c.do(ctx, altered{all, func(s plan.Schedule) plan.Schedule { looks++; stop(); return s }})
			if looks > c.before+1024*more || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v after %d schedules, ended after %d", c.name, err, looks, c.before+more)
			}
			cancel()
		}
	}
}
