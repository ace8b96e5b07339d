package algo_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/algo"
	"volley/algo/schedule"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
)

// tally is what a plan takes, counted from the programs of all processors.
type tally struct {
	C1, C2, memory, compute int
	pieces                  int
}

func count2(t *testing.T, p plan.Plan) tally {
	t.Helper()
	info := p.Info()
	c := tally{C1: info.Rounds(), pieces: max(1, info.Pieces)}
	largest := make([]int, c.C1)
	for k := range info.Processors {
		s := p.Schedule(k)
		c.memory = max(c.memory, s.Slots)
		c.compute = max(c.compute, s.Terms) // where no coefficient is zero
		for i, r := range s.Rounds {
			for _, x := range r.Sends {
				largest[i] = max(largest[i], len(x.Slots))
			}
		}
	}
	for _, n := range largest {
		c.C2 += n
	}
	c.memory = (c.memory + c.pieces - 1) / c.pieces
	return c
}

func (c tally) time(m sim.Model) time.Duration {
	w := math.Ceil(float64(m.Bytes) / float64(c.pieces))
	ns := float64(c.C1)*float64(m.Beta) + (float64(c.C2)*float64(m.Tau)+float64(c.compute)*float64(m.Gamma))*w*1e9
	return time.Duration(math.Round(ns))
}

// TestChoiceIsBest compares the planner's choice with the best of all plans of all
// algorithms by brute force, over a grid of problems, models and limits.
func TestChoiceIsBest(t *testing.T) {
	b8, q257 := fieldtest.Parse(t, "2^8"), fieldtest.Parse(t, "257")
	matrices := []matrix.Matrix{}
	for _, k := range []int{1, 5, 16, 24} {
		matrices = append(matrices, matrixtest.Random(t, b8, k, 1), must(matrix.Cauchy(b8, k, k))(t))
	}
	matrices = append(matrices, must(matrix.DFT(q257, 32))(t), must(matrix.DFT(q257, 16))(t), matrix.Vandermonde(must(matrix.CosetPoints(q257, 24))(t), 0))
	for _, shape := range [][2]int{{12, 3}, {25, 5}, {16, 1}, {3, 12}} {
		m := must(matrix.Random(b8, shape[0], shape[1], 2))(t)
		matrices = append(matrices, m)
	}
	models := []sim.Model{
		{Beta: 20 * time.Microsecond, Tau: 0.8e-9, Bytes: 1},
		{Beta: 20 * time.Microsecond, Tau: 0.8e-9, Bytes: 1 << 20},
		{Beta: 20 * time.Microsecond, Tau: 0.8e-9, Gamma: 0.1e-9, Bytes: 1 << 20},
		{Beta: 0, Tau: 1e-9, Bytes: 1000},
		{Beta: time.Millisecond, Tau: 1e-9, Gamma: 1e-9, Bytes: 1000},
	}
	limits := []algo.Limits{
		{}, {Rounds: algo.FewestPlus(0)}, {Rounds: algo.FewestPlus(1), Memory: 12}, {Memory: 8}, {Compute: 20},
		{Rounds: algo.FewestPlus(2), Memory: 30, Compute: 100}, {Rounds: algo.FewestPlus(0), Memory: 1, Compute: 1},
	}
	broken, chosen := 0, map[string]bool{}
	for i, m := range matrices {
		for _, ports := range []int{1, 3} {
			for l, limit := range limits {
				p := &algo.Problem{Matrix: m, Ports: ports, Limits: limit, WholePackets: (i+l)%2 == 1}
				if err := p.Prepare(); err != nil {
					t.Fatal(err)
				}
				type option struct {
					plan  plan.Plan
					tally tally
				}
				var all []option
				for _, a := range algo.Algorithms() {
					plans, err := a.Plans(p)
					if err != nil {
						continue
					}
					for _, q := range plans {
						all = append(all, option{q, count2(t, q)})
					}
				}
				fewest := 1 << 30
				for _, o := range all {
					if o.tally.pieces == 1 || !p.WholePackets {
						fewest = min(fewest, o.tally.C1)
					}
				}
				for _, model := range models {
					best := time.Duration(-1)
					for _, o := range all {
						c := o.tally
						if c.pieces > 1 && p.WholePackets || p.MostRounds() >= 0 && c.C1 > p.MostRounds() ||
							limit.Memory > 0 && c.memory > limit.Memory ||
							limit.Compute > 0 && c.compute > limit.Compute*c.pieces {
							continue
						}
						if x := c.time(model); best < 0 || x < best {
							best = x
						}
					}
					got, err := algo.Choose(algo.Auto, p, model)
					if best < 0 {
						e := new(algo.LimitError)
						if !errors.As(err, &e) {
							t.Fatalf("matrix %d, p=%d, %+v: %v, and no plan keeps the limits", i, ports, limit, err)
						}
						broken++
						checkLimitError(t, p, e)
						want := algo.LimitError{Limits: limit, RoundsOver: -1, Memory: -1, Compute: -1}
						for _, o := range all {
							c := o.tally
							if c.pieces > 1 && p.WholePackets {
								continue
							}
							compute := (c.compute + c.pieces - 1) / c.pieces
							rounds := p.MostRounds() < 0 || c.C1 <= p.MostRounds()
							memory, coding := limit.Memory == 0 || c.memory <= limit.Memory, limit.Compute == 0 || compute <= limit.Compute
							least := func(now *int, keeps bool, n int) {
								if keeps && (*now < 0 || n < *now) {
									*now = n
								}
							}
							least(&want.RoundsOver, memory && coding, c.C1-fewest)
							least(&want.Memory, rounds && coding, c.memory)
							least(&want.Compute, rounds && memory, compute)
						}
						if model.Gamma > 0 && *e != want { // else baselines are not asked
							t.Errorf("matrix %d (%s), p=%d, %+v: %+v, want %+v", i, m.ID(), ports, limit, *e, want)
						}
						continue
					}
					if err != nil {
						t.Fatalf("matrix %d, p=%d, %+v: %v", i, ports, limit, err)
					}
					if x := count2(t, got).time(model); x != best {
						t.Errorf("matrix %d (%s), K=%d p=%d, %+v, %+v: chose %s %s with %v, the best has %v",
							i, m.ID(), m.Rows(), ports, model, limit, got.Info().Algorithm, got.Info().Parameters, x, best)
					}
					chosen[got.Info().Algorithm] = true
				}
			}
		}
	}
	if broken == 0 || len(chosen) < 4 {
		t.Errorf("%d problems without a plan, and of algorithms chosen only %v", broken, chosen)
	}
}

// checkLimitError checks that each of the limits that an error names does, alone.
func checkLimitError(t *testing.T, of *algo.Problem, e *algo.LimitError) {
	t.Helper()
	try := func(l algo.Limits) {
		p := &algo.Problem{Matrix: of.Matrix, Ports: of.Ports, Limits: l, WholePackets: of.WholePackets}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		if _, err := algo.Choose(algo.Auto, p, sim.Model{}); err != nil {
			t.Errorf("%v: with %+v: %v", e, l, err)
		}
	}
	l := e.Limits
	if l.Memory > 0 && e.Memory > l.Memory {
		try(algo.Limits{Rounds: l.Rounds, Memory: e.Memory, Compute: l.Compute})
	}
	if l.Compute > 0 && e.Compute > l.Compute {
		try(algo.Limits{Rounds: l.Rounds, Memory: l.Memory, Compute: e.Compute})
	}
	if l.Rounds.Excess() >= 0 && e.RoundsOver > l.Rounds.Excess() {
		try(algo.Limits{Rounds: algo.FewestPlus(e.RoundsOver), Memory: l.Memory, Compute: l.Compute})
	}
	if !strings.Contains(e.Error(), "no plan keeps the limits") {
		t.Errorf("%v", e)
	}
}

func TestLimitErrorText(t *testing.T) {
	for _, c := range []struct {
		e    algo.LimitError
		want string
	}{
		{algo.LimitError{Limits: algo.Limits{Rounds: algo.FewestPlus(0), Memory: 3, Compute: 4}, RoundsOver: 1, Memory: 5, Compute: 6},
			"algo: no plan keeps the limits: want 1 or more rounds over the fewest, or 5 or more packets of memory, or 6 or more multiply-adds per symbol"},
		{algo.LimitError{Limits: algo.Limits{Memory: 1}, RoundsOver: 3, Memory: 2, Compute: 7},
			"algo: no plan keeps the limits: want 2 or more packets of memory"},
		{algo.LimitError{Limits: algo.Limits{Rounds: algo.FewestPlus(2), Memory: 3, Compute: 1}, RoundsOver: 2, Memory: -1, Compute: 2},
			"algo: no plan keeps the limits: want 2 or more multiply-adds per symbol"},
		{algo.LimitError{Limits: algo.Limits{Rounds: algo.FewestPlus(0)}, RoundsOver: -1, Memory: 5, Compute: 6}, "algo: no plan keeps the limits"},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}

// TestChooseErrors checks that all reasons are told where no algorithm has a plan, and
// that naming an algorithm allows it to cut packets.
func TestChooseErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	p := must(algo.NewProblem(matrixtest.Random(t, f, 6, 1), 1, algo.Natural))(t)
	if q, err := algo.Choose("exchange", p, sim.Model{}); err != nil || q.Info().Algorithm != "exchange" {
		t.Errorf("exchange: %v, %v", q, err)
	}
	if _, err := algo.Choose("dft", p, sim.Model{}); !errors.Is(err, algo.ErrStructure) || !strings.HasPrefix(err.Error(), "algo: dft for matrix random:1 over 2^8 with K = 6") {
		t.Errorf("dft: %v", err)
	}
	if _, err := algo.Choose("none", p, sim.Model{}); err == nil || !strings.Contains(err.Error(), `no algorithm "none"`) {
		t.Errorf("none: %v", err)
	}
	if list, rejected := algo.Candidates(p, sim.Model{}); len(list) == 0 || len(rejected) > 0 {
		t.Errorf("%d candidates; rejected: %v, want none", len(list), rejected)
	}
	p = must(algo.NewProblem(matrix.NewDense(f, 7, 7), 1, algo.Natural))(t)
	if list, rejected := algo.Candidates(p, sim.Model{}); len(list) == 0 || len(rejected) != 1 || rejected[0].Algorithm != "windows" {
		t.Errorf("%d candidates for zeros; rejected: %v, want windows", len(list), rejected)
	}
}

// TestChooseTies checks that of plans that take equally long the one is chosen that the
// registry names first.
func TestChooseTies(t *testing.T) {
	p := must(algo.NewProblem(matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 2, 1), 1, algo.Natural))(t)
	q := must(algo.Choose(algo.Auto, p, sim.Model{Beta: time.Microsecond, Tau: 1e-9, Gamma: 1e-9, Bytes: 100}))(t)
	if got := q.Info().Algorithm; got != "universal" { // prepare-and-shoot and bruck-allgather take the same
		t.Errorf("of several plans that take the same: %s", got)
	}
}

// TestChooseLeast compares the choice with all candidates, and what these take with the least that
// they say.
func TestChooseLeast(t *testing.T) {
	for _, c := range []struct {
		k, r     int
		separate bool
	}{{16, 16, false}, {36, 36, false}, {24, 8, true}, {24, 8, false}, {6, 25, true}} {
		p := &algo.Problem{Matrix: must(matrix.Cauchy(fieldtest.Parse(t, "2^8"), c.k, c.r))(t), Separate: c.separate}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		for bytes := int64(256); bytes <= 1<<24; bytes *= 16 {
			n := sim.Network{Latency: 20 * time.Microsecond, Overhead: 2 * time.Microsecond, Gap: 1e-9}
			model := sim.Model{Network: n, Bytes: bytes, Gamma: 1e-10}
			list, _ := algo.Candidates(p, model)
			for _, c := range list {
				least, known := schedule.Least(c.Plan)
				if model.Time(least) > c.Time || known && (least.C1 != c.Cost.C1 || least.C2 != c.Cost.C2) {
					t.Errorf("%s takes %d/%d, %v, and by itself %d/%d, at least %v", c.Plan.Info().Name(), c.Cost.C1, c.Cost.C2, c.Time, least.C1, least.C2, model.Time(least))
				}
			}
			least := slices.MinFunc(list, func(a, b algo.Candidate) int { return int(a.Time - b.Time) })
			if q := must(algo.Choose(algo.Auto, p, model))(t); model.Time(sim.Count(q)) > least.Time {
				t.Errorf("%+v, %v, %d bytes: %s takes %v, %s %v", c, n, bytes, q.Info().Name(), model.Time(sim.Count(q)), least.Plan.Info().Name(), least.Time)
			}
		}
	}
}

// TestChooseCounts bounds the memory that choosing among plans for thousands of processors allocates, by which it
// counts few of them, and few processors of each.
func TestChooseCounts(t *testing.T) {
	for _, c := range []struct {
		k, r     int
		separate bool
	}{{2000, 2000, false}, {2000, 2000, true}, {2000, 100, false}, {2000, 300, true}} {
		p := &algo.Problem{Matrix: must(matrix.Cauchy(fieldtest.Parse(t, "2^16"), c.k, c.r))(t), Separate: c.separate}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		model := sim.Model{Network: sim.Network{Latency: 20 * time.Microsecond, Overhead: 2 * time.Microsecond, Gap: 1e-9}, Bytes: 1 << 20}
		if n := testing.AllocsPerRun(1, func() { must(algo.Choose(algo.Auto, p, model))(t) }); n > 400_000 {
			t.Errorf("K = %d, R = %d: %v allocations, want 400,000 at most", c.k, c.r, n)
		}
	}
}
