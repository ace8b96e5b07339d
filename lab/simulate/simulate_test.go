package simulate_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	_ "volley/lab/families"
	"volley/lab/simulate"
	"volley/plan"
	"volley/sim"
)

// unit has β = 1 ms and 1 ms for an element.
var unit = sim.Model{Beta: time.Millisecond, Tau: 1e-6, Bytes: 1000}

func run(t testing.TB, p plan.Plan, m sim.Model, n simulate.Noise, seed uint64, runs int) simulate.Sample {
	t.Helper()
	s, err := simulate.Run(context.Background(), p, m, n, seed, runs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// messages is a plan of k processors that says for each round who sends to whom how many
// elements, on port 0, and computes nothing.
func messages(t *testing.T, k int, rounds ...[][3]int) *plan.Materialized {
	t.Helper()
	m := &plan.Materialized{
		Common: plan.Info{
			Field: fieldtest.Parse(t, "2"), Processors: k, Ports: 1, Rows: k, Columns: k, Phases: []plan.Phase{{Name: "exchange", Rounds: len(rounds)}},
		},
	}
	for i := range k {
		m.Programs = append(m.Programs, &plan.Program{Proc: i, Inputs: 1, Rounds: make([]plan.Round, len(rounds)), Outputs: []int{0}})
		m.Rows, m.Columns = append(m.Rows, []int{i}), append(m.Columns, []int{i})
	}
	for r, list := range rounds {
		for _, x := range list {
			src, dst := &m.Programs[x[0]].Rounds[r], &m.Programs[x[1]].Rounds[r]
			src.Sends = append(src.Sends, plan.Send{Dst: x[1], Slots: make([]int, x[2])})
			dst.Recvs = append(dst.Recvs, plan.Recv{Src: x[0], Count: x[2]})
		}
	}
	if err := plan.Validate(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// fourWay is a plan of two pairs that do not wait for each other.
func fourWay(t *testing.T) *plan.Materialized {
	t.Helper()
	return messages(t, 4, [][3]int{{0, 1, 3}, {2, 3, 1}}, [][3]int{{0, 1, 1}, {2, 3, 3}})
}

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

// cut returns a plan that is the same but that packets are cut into pieces.
func cut(m *plan.Materialized, pieces int) plan.Plan {
	c := *m
	c.Common.Pieces = pieces
	return &c
}

func TestSimulateByHand(t *testing.T) {
	const ms = time.Millisecond
	coded := unit
	coded.Gamma = 1e-6 // 1 ms for a multiply-add
	half := sim.Model{Gamma: 0.5e-9, Bytes: 1}
	for _, c := range []struct {
		name  string
		plan  plan.Plan
		model sim.Model
		noise simulate.Noise
		runs  int // of 3: one where all are alike
		want  time.Duration
	}{
		{"the empty round costs nothing", uneven(t), unit, simulate.Noise{}, 1, (1 + 3 + 1 + 2) * ms},
		{"nobody waits for the other pair", fourWay(t), unit, simulate.Noise{}, 1, (1 + 3 + 1 + 1) * ms},
		{"one waits for what it receives", messages(t, 3, [][3]int{{0, 1, 3}}, [][3]int{{1, 2, 1}}), unit, simulate.Noise{}, 1, (1 + 3 + 1 + 1) * ms},
		{"all are stragglers", fourWay(t), unit, simulate.Noise{Stragglers: 1, Slowdown: 2.5}, 3, 15 * ms},
		{"nobody is", fourWay(t), unit, simulate.Noise{Slowdown: 9}, 1, 6 * ms},
		{"stragglers no slower", fourWay(t), unit, simulate.Noise{Stragglers: 1, Slowdown: 1}, 1, 6 * ms},
		{"jitter of no size", fourWay(t), unit, simulate.Noise{Jitter: simulate.Lognormal}, 1, 6 * ms},
		{"a size and no jitter", fourWay(t), unit, simulate.Noise{Size: 0.5}, 1, 6 * ms},
		{"elements of a quarter", cut(fourWay(t), 4), unit, simulate.Noise{}, 1, 3 * ms},
		{"coding where there is none", fourWay(t), coded, simulate.Noise{}, 1, 6 * ms},
		{"nor another processor", messages(t, 1), coded, simulate.Noise{}, 1, 0},
		{"coding of 1 term and of 4", uneven(t), coded, simulate.Noise{}, 1, 11 * ms},
		{"by stragglers", uneven(t), coded, simulate.Noise{Stragglers: 1, Slowdown: 2.5}, 3, 27*ms + ms/2},
		{"of halves", cut(uneven(t), 2), coded, simulate.Noise{}, 1, 6*ms + ms/2},
		{"of 4 terms of half a nanosecond", uneven(t), half, simulate.Noise{}, 1, 2},
		{"as long as can be", messages(t, 2, [][3]int{{0, 1, 1}}), sim.Model{Beta: math.MaxInt64}, simulate.Noise{}, 1, math.MaxInt64},
	} {
		if s := run(t, c.plan, c.model, c.noise, 1, 3); len(s) != c.runs || s.Quantile(0.5) != c.want || slices.ContainsFunc(s, func(d time.Duration) bool { return d != c.want }) {
			t.Errorf("%s: %v, want %d of %v", c.name, s, c.runs, c.want)
		}
	}
}

// TestNoNoise compares with Model.Time: never longer, and equal where every processor
// sends or receives a largest message in each round.
func TestNoNoise(t *testing.T) {
	for _, a := range algo.Algorithms() {
		if a.Structured {
			continue
		}
		for _, k := range []int{1, 2, 3, 5, 8, 16, 27, 64, 100} {
			for _, ports := range []int{1, 2, 3} {
				p := algotest.Compile(t, a.Name, "2^8", "random:1", k, ports)
				all, err := plan.Materialize(p) // in which no two are known to be alike
				if err != nil {
					t.Fatal(err)
				}
				model := unit.Time(sim.Count(p))
				for _, q := range []plan.Plan{p, all} {
					got := run(t, q, unit, simulate.Noise{}, 0, 5)[0]
					if diff := model - got; diff < -1 || a.Name != "central" && diff > 1 {
						t.Errorf("%s K=%d p=%d: %v, in the model %v", a.Name, k, ports, got, model)
					}
				}
			}
		}
	}
}

func TestSeed(t *testing.T) {
	p := algotest.Compile(t, "universal", "2^8", "random:1", 27, 2)
	n := simulate.Noise{Jitter: simulate.Lognormal, Size: 0.3, Stragglers: 0.1, Slowdown: 3}
	a := run(t, p, unit, n, 7, 50)
	if b := run(t, p, unit, n, 7, 50); !slices.Equal(a, b) {
		t.Errorf("one seed, two samples: %v and %v", a, b)
	}
	if b := run(t, p, unit, n, 8, 50); slices.Equal(a, b) {
		t.Errorf("two seeds, one sample: %v", a)
	}
	if !slices.IsSorted(a) || a[0] == a[49] {
		t.Errorf("not ascending, or all the same: %v", a)
	}
	if a.Quantile(0) != a[0] || a.Quantile(1) != a[49] || a.Quantile(0.5) != a[24] || a.Quantile(0.95) != a[47] {
		t.Errorf("quantiles of %v", a)
	}
}

// TestSameSample checks that a seed gives the times that it has always given.
func TestSameSample(t *testing.T) {
	s := run(t, fourWay(t), unit, simulate.Noise{Jitter: simulate.Exponential, Size: 1, Stragglers: 0.3, Slowdown: 3}, 7, 5)
	for i, want := range []time.Duration{21480345, 34715836, 37997487, 41619513, 53069063} {
		if (s[i] - want).Abs() > 1 { // where floats are rounded in another way
			t.Errorf("run %d: %d ns, want %d ns", i, s[i], want)
		}
	}
}

// TestStragglersMonotone checks that slower stragglers, and more of them, never make
// a run faster.
func TestStragglersMonotone(t *testing.T) {
	for _, name := range []string{"universal", "ring-allgather", "central"} {
		p := algotest.Compile(t, name, "2^8", "random:1", 24, 1)
		for _, jitter := range []simulate.Jitter{simulate.Fixed, simulate.Lognormal, simulate.Exponential} {
			var before simulate.Sample
			for _, x := range []struct{ share, slowdown float64 }{{0, 1}, {0.1, 1}, {0.1, 1.5}, {0.1, 4}, {0.3, 4}, {0.3, 100}, {1, 100}} {
				s := run(t, p, unit, simulate.Noise{jitter, 0.5, x.share, x.slowdown}, 3, 40)
				for i := range before {
					if now := s[min(i, len(s)-1)]; now < before[i] {
						t.Errorf("%s, %s, %+v: %v after %v", name, jitter, x, now, before[i])
					}
				}
				before = s
			}
		}
	}
}

// TestJitter checks mean and deviation of single messages, and that where many wait
// for the last one, jitter costs time.
func TestJitter(t *testing.T) {
	m := sim.Model{Beta: time.Second} // one factor
	one := algotest.Compile(t, "direct", "2^8", "random:1", 2, 1)
	many := algotest.Compile(t, "universal", "2^8", "random:1", 64, 1)
	for _, c := range []struct {
		jitter     simulate.Jitter
		mean, sdev float64 // of the larger of two
	}{
		// Exponential, size 0.2: 1 + 0.2·max of two, mean 1.5 and variance 1.25.
		{simulate.Exponential, 1.3, 0.2 * math.Sqrt(1.25)},
		// Lognormal: mean of the larger is 2·Φ(σ/√2) for factors of mean 1.
		{simulate.Lognormal, 1 + math.Erf(math.Sqrt(math.Log1p(0.04))/2), 0},
	} {
		n := simulate.Noise{Jitter: c.jitter, Size: 0.2}
		s := run(t, one, m, n, 1, 20_000)
		mean, square := 0.0, 0.0
		for _, d := range s {
			mean += d.Seconds() / float64(len(s))
		}
		for _, d := range s {
			square += (d.Seconds() - mean) * (d.Seconds() - mean) / float64(len(s))
		}
		if math.Abs(mean-c.mean) > 0.005 || c.sdev > 0 && math.Abs(math.Sqrt(square)-c.sdev) > 0.01 {
			t.Errorf("%s: mean %.4f, deviation %.4f, want %.4f and %.4f", c.jitter, mean, math.Sqrt(square), c.mean, c.sdev)
		}
		if got, quiet := run(t, many, unit, n, 1, 50).Quantile(0.5), unit.Time(sim.Count(many)); got <= quiet {
			t.Errorf("%s: K = 64 takes %v with jitter and %v without", c.jitter, got, quiet)
		}
	}
}

// TestCoding checks that coding counts where it has a price.
func TestCoding(t *testing.T) {
	p := algotest.Compile(t, "universal", "2^8", "random:1", 16, 1)
	m := unit
	m.Gamma = 1e-6
	for _, q := range []plan.Plan{p, materialize(t, p)} {
		if got, want := run(t, q, m, simulate.Noise{}, 1, 1)[0], m.Time(sim.Count(q)); (got-want).Abs() > 1 || want <= unit.Time(sim.Count(q)) {
			t.Errorf("with coding: %v, in the model %v", got, want)
		}
	}
}

func materialize(t *testing.T, p plan.Plan) plan.Plan {
	t.Helper()
	m, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSimulateErrors(t *testing.T) {
	p := uneven(t)
	for _, n := range []simulate.Noise{
		{Jitter: "gauss"}, {Size: -1}, {Size: math.NaN()}, {Size: math.Inf(1)}, {Stragglers: -0.1}, {Stragglers: 1.1}, {Stragglers: math.NaN()},
		{Size: simulate.MostJitter + 1}, {Stragglers: 1.1, Slowdown: 2}, {Stragglers: 0.5, Slowdown: simulate.MostSlowdown + 1},
		{Stragglers: 0.5, Slowdown: 0.5}, {Stragglers: 0.5, Slowdown: math.NaN()}, {Stragglers: 0.5, Slowdown: math.Inf(1)},
	} {
		if _, err := simulate.Run(context.Background(), p, unit, n, 1, 1); err == nil {
			t.Errorf("%+v: no error", n)
		}
	}
	run(t, p, unit, simulate.Noise{simulate.Lognormal, simulate.MostJitter, 1, simulate.MostSlowdown}, 1, 1)
	if _, err := simulate.Run(context.Background(), p, unit, simulate.Noise{}, 1, 0); err == nil {
		t.Error("0 runs: no error")
	}
	ring := algotest.Compile(t, "ring-allgather", "2^16", "random:1", 10_000, 1)
	if _, err := simulate.Run(context.Background(), ring, unit, simulate.Noise{Jitter: simulate.Lognormal, Size: 1}, 1, 1); !errors.Is(err, simulate.ErrTooLarge) {
		t.Errorf("10^8 messages: %v", err)
	}
	if got, want := run(t, ring, unit, simulate.Noise{}, 1, 1)[0], unit.Time(sim.Count(ring)); got != want {
		t.Errorf("10^8 messages, all alike: %v, want %v", got, want)
	}
	slow := sim.Model{Beta: time.Hour, Tau: 1, Bytes: 1 << 60}
	if got := run(t, p, slow, simulate.Noise{Jitter: simulate.Lognormal, Size: 1}, 1, 1)[0]; got != math.MaxInt64 {
		t.Errorf("%v, want the longest duration there is", got)
	}
}

// TestSimulateLarge takes 2·10^4 processors; make verify-all, 10^5.
func TestSimulateLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	p := algotest.Compile(t, "universal", "2^16", "random:1", verifyall.Most(20_000, 100_000), 3)
	n := simulate.Noise{Jitter: simulate.Exponential, Size: 0.2, Stragglers: 0.001, Slowdown: 4}
	s := run(t, p, unit, n, 1, 4)
	if quiet := unit.Time(sim.Count(p)); s[0] <= quiet || s[3] > 100*quiet {
		t.Errorf("%v, without noise %v", s, quiet)
	}
}
