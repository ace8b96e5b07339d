package volley

import (
	"errors"
	"sync"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// runApart runs an encoder of its own at each rank, as processes do.
func runApart(t *testing.T, encoders []*Encoder, bytes int) (reports []*Report, errs []error) {
	t.Helper()
	reports, errs = make([]*Report, len(encoders)), make([]error, len(encoders))
	var ranks sync.WaitGroup
	for r, end := range local.New(len(encoders)) {
		ranks.Go(func() {
			first, last := hostedAt(encoders[r], r, len(encoders))
			var packets []Packet
			for proc := first; proc < last; proc++ {
				var p Packet
				if _, source := encoders[r].problem.Source(proc); source {
					p.Data = make([]byte, bytes)
				}
				if _, sink := encoders[r].problem.Sink(proc); sink {
					p.Result = new([]byte)
				}
				packets = append(packets, p)
			}
			reports[r], errs[r] = encoders[r].Run(t.Context(), end, packets...)
		})
	}
	ranks.Wait()
	return reports, errs
}

func hostedAt(e *Encoder, rank, ranks int) (first, end int) {
	n := e.problem.Processors()
	return rank * n / ranks, (rank + 1) * n / ranks
}

// TestRankZeroChooses has ranks whose own choice would be another plan than that of rank 0: all run that of rank 0, which
// alone has chosen. A second run says nothing more about plans.
func TestRankZeroChooses(t *testing.T) {
	SetCacheBytes(0)
	defer SetCacheBytes(DefaultCacheBytes)
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), 24, 4)
	if err != nil {
		t.Fatal(err)
	}
	const bytes = 1 << 20
	var encoders []*Encoder
	for r := range 3 {
		e, err := NewEncoder(a)
		if err != nil {
			t.Fatal(err)
		}
		if r > 0 {
			e.problem.Limits.Rounds = algo.FewestPlus(0)
		}
		encoders = append(encoders, e)
	}
	own, err := algo.ChooseAfter(algo.Auto, encoders[1].problem, encoders[0].model(bytes))
	if err != nil {
		t.Fatal(err)
	}
	reports, errs := runApart(t, encoders, bytes)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	how := encoders[0].plans[0].how
	if how.Name == own.Name {
		t.Fatalf("rank 1 would choose %s, as rank 0 does: the case has gone", own.Name)
	}
	for r, e := range encoders {
		if got := e.plans[0]; got.how.Name != how.Name || got.how.Ports != how.Ports || got.slots != memorySlots(t.Context(), got.Plan) || !reports[r].Verified {
			t.Errorf("rank %d: %+v with %d slots, and rank 0 has %+v", r, got.how, got.slots, how)
		}
	}
	again, errs := runApart(t, encoders, bytes)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r := range again {
		if again[r].PlanHash != reports[r].PlanHash || again[r].ControlRounds != 2 || reports[r].ControlRounds < 4 { // another for each second
			t.Errorf("rank %d: the second run has plan %s and %d rounds of control, the first one %s and %d", r,
				again[r].PlanHash, again[r].ControlRounds, reports[r].PlanHash, reports[r].ControlRounds)
		}
	}
}

// TestRankZeroFindsNone has no plan that keeps the limits: all ranks say which would do.
func TestRankZeroFindsNone(t *testing.T) {
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), 24, 4)
	if err != nil {
		t.Fatal(err)
	}
	var encoders []*Encoder
	for range 3 {
		e, err := NewEncoder(a, WithLimits(algo.Limits{Compute: 1}))
		if err != nil {
			t.Fatal(err)
		}
		encoders = append(encoders, e)
	}
	_, errs := runApart(t, encoders, 1<<10)
	for r, err := range errs {
		if !errors.As(err, new(*algo.LimitError)) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestSaidIsNoPlan has rank 0 say what is the name of no plan: the others have none.
func TestSaidIsNoPlan(t *testing.T) {
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), 24, 4)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []algo.Trial{
		{Name: "none:1", Ports: 1, Slots: 1}, {Name: "helpers:2", Ports: 1 << 30, Slots: 3}, {Name: "helpers:2", Ports: 3}, {Name: "sinks", Ports: 1, Slots: 9},
	} {
		if c, err := e.chooseAs(t.Context(), e.model(1<<10), transport.Limits{}, said); err == nil {
			t.Errorf("%+v is %s", said, c.Info().Name())
		}
	}
}
