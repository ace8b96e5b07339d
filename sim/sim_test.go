package sim_test

import (
	"math"
	"testing"
	"time"

	"volley/field"
	"volley/plan"
	"volley/sim"
)

// uneven is a plan in which two processors send messages of different sizes.
func uneven(t *testing.T) plan.Plan {
	t.Helper()
	f, err := field.Parse("2")
	if err != nil {
		t.Fatal(err)
	}
	one := plan.Term{Slot: 0, Coef: field.One}
	m := &plan.Materialized{
		Common: plan.Info{
			Field: f, Processors: 2, Ports: 1, Rows: 2, Columns: 2,
			Phases: []plan.Phase{{Name: "exchange", Rounds: 3}},
		},
		Programs: []*plan.Program{
			{Proc: 0, Inputs: 1, Rounds: []plan.Round{
				{Sends: []plan.Send{{Dst: 1, Slots: []int{0, 0, 0}}}, Recvs: []plan.Recv{{Src: 1, Count: 1}}},
				{}, // nobody sends
				{Sends: []plan.Send{{Dst: 1, Slots: []int{0, 1}}}},
			}, Compute: []plan.Combination{{one}}, Outputs: []int{2}},
			{Proc: 1, Inputs: 1, Rounds: []plan.Round{
				{Sends: []plan.Send{{Dst: 0, Slots: []int{0}}}, Recvs: []plan.Recv{{Src: 0, Count: 3}}},
				{},
				{Compute: []plan.Combination{{one, one}}, Recvs: []plan.Recv{{Src: 0, Count: 2}}},
			}, Compute: []plan.Combination{{one, one}}, Outputs: []int{5}},
		},
		Rows: [][]int{{0}, {1}}, Columns: [][]int{{0}, {1}},
	}
	if err := plan.Validate(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCount(t *testing.T) {
	p := uneven(t)
	c := sim.Count(p)
	if c.C1 != 3 || c.C2 != 5 {
		t.Errorf("C1/C2 = %d/%d, want 3/5", c.C1, c.C2)
	}
	for r, want := range []plan.RoundTraffic{{Largest: 3, Messages: 2}, {}, {Largest: 2, Messages: 1}} {
		if c.Rounds[r] != want {
			t.Errorf("round %d: %+v, want %+v", r, c.Rounds[r], want)
		}
	}
	if c3, err := sim.MultiplyAdds(p); err != nil || c3 != 4 {
		t.Errorf("C3 = %d, %v, want 4", c3, err)
	}
}

func TestTime(t *testing.T) {
	c := sim.Cost{C1: 3, C2: 5}
	m := sim.Model{Beta: time.Millisecond, Tau: 2e-9, Symbols: 1_000_000}
	if got, want := m.Time(c), 13*time.Millisecond; got != want {
		t.Errorf("3·1ms + 5·10^6·2ns = %v, want %v", got, want)
	}
	m.Symbols = 1 << 62
	if got := m.Time(c); got != math.MaxInt64 {
		t.Errorf("5·2^62·2ns = %v, want the longest duration there is", got)
	}
}
