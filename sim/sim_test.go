package sim_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"volley/field"
	"volley/plan"
	"volley/sim"
)

// uneven is a plan in which two processors send messages of different sizes.
func uneven(t *testing.T) *plan.Materialized {
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
	if err := plan.Validate(t.Context(), m); err != nil {
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
	for r, want := range []sim.NodeRound{{Messages: 1, Elements: 3}, {}, {Messages: 1, Elements: 2}} {
		if c.Nodes[r] != want {
			t.Errorf("round %d: the busiest processor has %+v, want %+v", r, c.Nodes[r], want)
		}
	}
	if c.Messages() != 2 || c.NodePackets() != 5 {
		t.Errorf("the busiest processor has %d messages of %v packets, want 2 of 5", c.Messages(), c.NodePackets())
	}
	if c3, err := sim.MultiplyAdds(p); err != nil || c3 != 4 {
		t.Errorf("C3 = %d, %v, want 4", c3, err)
	}
}

// TestCountUntil gives up after the first processor, and after none.
func TestCountUntil(t *testing.T) {
	p := uneven(t)
	if c, all := (sim.Model{}).CountUntil(p, func(c sim.Cost) bool { return c.C2 >= 5 }); all || c.Nodes[0].Elements != 3 || c.Rounds[0].Messages != 1 {
		t.Errorf("%+v, %t after the first processor", c, all)
	}
	if c, all := (sim.Model{}).CountUntil(p, func(c sim.Cost) bool { return c.C2 >= 6 }); !all || !reflect.DeepEqual(c, sim.Count(p)) {
		t.Errorf("%+v, %t, want %+v", c, all, sim.Count(p))
	}
}

// TestCountRates has the elements of a slower link, sent or received, count for more where that takes longest.
func TestCountRates(t *testing.T) {
	p := uneven(t)
	for slower, want := range map[string][]float64{"0:0.5": {6, 0, 4}, "1:0.25": {12, 0, 8}, "0:0.5,1:0.1": {30, 0, 20}, "1:1": {3, 0, 2}} {
		c := sim.Model{Network: sim.Network{Gap: 1, Slower: slower}}.Count(p)
		for r, elements := range want {
			if c.Nodes[r].Elements != elements {
				t.Errorf("%s: %v elements in round %d, want %v", slower, c.Nodes[r].Elements, r, elements)
			}
		}
		if plain := sim.Count(p); c.C2 != plain.C2 || !reflect.DeepEqual(c.Rounds, plain.Rounds) {
			t.Errorf("%s: %+v, want what else is counted as in %+v", slower, c, plain)
		}
	}
}

// TestRoundTimes checks that the rounds take the time of the messages together.
func TestRoundTimes(t *testing.T) {
	c := sim.Count(uneven(t))
	network := sim.Network{Latency: 20, Overhead: 3, Gap: 2e-9}
	for _, m := range []sim.Model{{Beta: 7, Tau: 1e-9, Bytes: 4}, {Network: network, Bytes: 4}} {
		sum := time.Duration(0)
		for _, d := range m.RoundTimes(c) {
			sum += d
		}
		if list := m.RoundTimes(c); sum != m.Time(c) || len(list) != 3 || list[0] <= list[2] {
			t.Errorf("%+v: %v, %v in all", m, list, m.Time(c))
		}
	}
}

// failing is a plan that has no programs.
type failing struct{ plan.Plan }

var errSingular = errors.New("singular")

func (failing) Program(int) (*plan.Program, error) { return nil, errSingular }

// long is a plan of more terms than are looked at.
type long struct{ plan.Plan }

func (l long) Schedule(proc int) plan.Schedule {
	s := l.Plan.Schedule(proc)
	s.Terms = 1<<17 + 1
	return s
}

func TestMultiplyAdds(t *testing.T) {
	p := uneven(t)
	if c3, err := sim.MultiplyAdds(failing{p}); c3 != 0 || !errors.Is(err, errSingular) {
		t.Errorf("C3 = %d, %v, want the error of the program", c3, err)
	}
	if c3, err := sim.MultiplyAdds(long{failing{p}}); c3 != 1<<17+1 || err != nil {
		t.Errorf("C3 = %d, %v, want that of the schedule: the programs are too long to be made", c3, err)
	}
}

func TestPacketCost(t *testing.T) {
	for _, c := range []struct {
		pieces int
		c2     float64
		c3     int
	}{{0, 9, 9}, {1, 9, 9}, {2, 4.5, 5}, {3, 3, 3}} {
		cost := sim.Cost{C2: 9, C3: 9, Pieces: c.pieces}
		if c2, c3 := cost.PacketC2(), cost.PacketC3(); c2 != c.c2 || c3 != c.c3 {
			t.Errorf("%d pieces: C2 %v and C3 %d, want %v and %d", c.pieces, c2, c3, c.c2, c.c3)
		}
	}
}

func TestTime(t *testing.T) {
	network := sim.Network{Latency: time.Millisecond, Overhead: time.Microsecond, Gap: 1e-9}
	nodes := []sim.NodeRound{{Messages: 3, Elements: 6}, {}, {Messages: 1, Elements: 2}}
	for _, c := range []struct {
		name  string
		cost  sim.Cost
		model sim.Model
		want  time.Duration
	}{
		{"3·1ms + 5·10^6·2ns", sim.Cost{C1: 3, C2: 5}, sim.Model{Beta: time.Millisecond, Tau: 2e-9, Bytes: 1_000_000}, 13 * time.Millisecond},
		{"3·10·2ns", sim.Cost{C3: 3}, sim.Model{Gamma: 2e-9, Bytes: 10}, 60},
		{"0.6ns", sim.Cost{C2: 1}, sim.Model{Tau: 0.6e-9, Bytes: 1}, 1},
		{"4·251·1ns, the last piece filled up", sim.Cost{C2: 4, Pieces: 4}, sim.Model{Tau: 1e-9, Bytes: 1001}, 1004},
		{"2·1ms + 4·1µs + 6·250·1ns + 2·250·1ns + 3·250·1ns", sim.Cost{C1: 3, C2: 9, C3: 3, Pieces: 4, Nodes: nodes},
			sim.Model{Network: network, Beta: time.Hour, Tau: 1, Gamma: 1e-9, Bytes: 999}, 2_004_000 + 1500 + 500 + 750},
		{"2·1ms + 2·1µs + 5·100·1ns at least", sim.Cost{C1: 2, C2: 5}, sim.Model{Network: network, Bytes: 100}, 2_002_500},
		{"nothing on a network", sim.Cost{}, sim.Model{Network: network, Bytes: 100}, 0},
		{"2^63ns", sim.Cost{C1: 1}, sim.Model{Beta: math.MaxInt64}, math.MaxInt64},
		{"5·2^62·2ns", sim.Cost{C2: 5}, sim.Model{Tau: 2e-9, Bytes: 1 << 62}, math.MaxInt64},
	} {
		if got := c.model.Time(c.cost); got != c.want {
			t.Errorf("%s = %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPerByte checks the unit that a time is written in, and which times there may be.
func TestPerByte(t *testing.T) {
	for x, want := range map[sim.PerByte]string{
		0: "0 ns/B", 2: "2 s/B", 1: "1 s/B", 0.5: "500 ms/B", 1e-3: "1 ms/B", -0.25: "-250 ms/B", 2.5e-6: "2.5 µs/B", 8e-10: "0.8 ns/B", 1.23456e-8: "12.35 ns/B", 3e-14: "3e-05 ns/B",
	} {
		if got := x.String(); got != want {
			t.Errorf("%v: %q, want %q", float64(x), got, want)
		}
	}
	for x, valid := range map[float64]bool{0: true, 1e-9: true, math.MaxFloat64: true, -1e-300: false, math.Inf(1): false, math.Inf(-1): false, math.NaN(): false} {
		if err := sim.PerByte(x).Validate(); (err == nil) != valid {
			t.Errorf("%v: error %v", x, err)
		}
	}
}

// TestCountBetween counts only what goes from host to host: the messages of a rank, and the elements of a host. What is received
// counts where less is sent.
func TestCountBetween(t *testing.T) {
	m := &plan.Materialized{Common: plan.Info{Processors: 6, Ports: 1, Phases: []plan.Phase{{Rounds: 4}}}}
	for i := range 6 {
		m.Programs = append(m.Programs, &plan.Program{Proc: i, Inputs: 1, Rounds: make([]plan.Round, 4)})
	}
	for r, list := range [][][3]int{ // who sends to whom how many elements
		{{0, 1, 7}, {2, 3, 7}},             // within hosts of three, and between
		{{0, 3, 1}, {1, 4, 2}, {4, 0, 5}},  // two of one rank go out, one comes in
		{{0, 2, 9}, {3, 5, 9}, {5, 3, 10}}, // within
		{{0, 3, 1}, {1, 3, 2}},             // two come in
	} {
		for _, x := range list {
			src, dst := &m.Programs[x[0]].Rounds[r], &m.Programs[x[1]].Rounds[r]
			src.Sends = append(src.Sends, plan.Send{Dst: x[1], Slots: make([]int, x[2])})
			dst.Recvs = append(dst.Recvs, plan.Recv{Src: x[0], Count: x[2]})
		}
	}
	host, rank := func(proc int) int { return proc / 3 }, func(proc int) int { return proc / 2 }
	if got, want := sim.CountBetween(m, rank, host).Nodes, []sim.NodeRound{{1, 7}, {2, 5}, {}, {2, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := sim.Count(m).Nodes, []sim.NodeRound{{1, 7}, {1, 5}, {1, 10}, {2, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
