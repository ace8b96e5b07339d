package exchange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/algo/schedule"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/verifyall"
	"volley/plan"
)

// TestParameters runs exchanges of all kinds of radices, there and back, splits, and helpers of
// some segments on random symbols of a large field: every K up to 40, and up to 256.
func TestParameters(t *testing.T) {
	f := fieldtest.Parse(t, "goldilocks")
	list := []int{64, 96, 100, 128, 169, 200, 243, 256}
	for k := 3; k <= 40; k++ {
		list = append(list, k)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	plans := map[string]int{}
	for _, k := range list {
		if k > verifyall.Pick(40, 256) {
			continue
		}
		r := 1 + rng.IntN(k)
		for _, x := range []struct {
			r        int
			separate bool
		}{{k, false}, {r, false}, {r, true}} {
			ports := 1 + rng.IntN(4)
			task := sinksProblem(t, randomMatrix(t, f, k, x.r), x.separate, ports)
			check := func(q plan.Plan, err error) {
				if err == nil {
					plans[q.Info().Algorithm]++
					runOnRandom(t, task, q)
				}
			}
			there, back := randomRadices(rng, k), randomRadices(rng, k)
			check(ExchangeWith(task, nil, [][]int{there, back}))
			check(HelpersWith(task, [][]int{{1 + rng.IntN(4)}}))
			if splits, err := SplitPlans(task); err == nil && x.r == k && !x.separate {
				check(splits[rng.IntN(len(splits))], nil)
			}
		}
	}
	for _, name := range []string{"exchange", "helpers", "split"} {
		if plans[name] < 5 {
			t.Errorf("%d plans of %s, want more", plans[name], name)
		}
	}
}

// randomRadices returns radices whose product is m or more, and none too many.
func randomRadices(rng *rand.Rand, m int) []int {
	var list []int
	for product := 1; product < m; {
		list = append(list, 2+rng.IntN(min(m-1, 12)))
		product *= list[len(list)-1]
	}
	return list
}

// runOnRandom runs a plan, message by message, on a random symbol for each input, and compares
// its outputs with the products of the inputs and the matrix.
func runOnRandom(t *testing.T, task schedule.Task, q plan.Plan) {
	t.Helper()
	info, f := q.Info(), q.Info().Field
	what := fmt.Sprintf("%s %s, K=%d R=%d separate=%t p=%d", info.Algorithm, info.Parameters, task.Matrix.Rows(), task.Matrix.Cols(), task.Separate, task.Ports)
	m, err := plan.Materialize(q)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := plan.Validate(t.Context(), m); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(info.Rows)))
	inputs := make([]field.Element, info.Rows)
	for row := range inputs {
		inputs[row] = field.Code(rng.Uint64() >> 1)
	}
	held := make([][]field.Element, info.Processors)
	compute := func(k int, list []plan.Combination) {
		for _, c := range list {
			var sum field.Element
			for _, term := range c {
				sum = f.Add(sum, f.Mul(term.Coef, held[k][term.Slot]))
			}
			held[k] = append(held[k], sum)
		}
	}
	for k, p := range m.Programs {
		for i := range p.Inputs {
			held[k] = append(held[k], inputs[m.Rows[k][i]])
		}
	}
	for round := range info.Rounds() {
		for k, p := range m.Programs {
			compute(k, p.Rounds[round].Compute)
		}
		before := slices.Clone(held) // messages leave before any arrives
		for k, p := range m.Programs {
			for _, x := range p.Rounds[round].Recvs {
				for _, s := range m.Programs[x.Src].Rounds[round].Sends {
					if s.Dst == k && s.Port == x.Port {
						for _, slot := range s.Slots {
							held[k] = append(held[k], before[x.Src][slot])
						}
					}
				}
			}
		}
	}
	pieces := info.PieceCount()
	for k, p := range m.Programs {
		compute(k, p.Compute)
		for i, slot := range p.Outputs {
			column := m.Columns[k][i]
			var want field.Element
			for row := range task.Matrix.Rows() {
				want = f.Add(want, f.Mul(task.Matrix.At(row, column/pieces), inputs[row*pieces+column%pieces]))
			}
			if held[k][slot] != want {
				t.Fatalf("%s: output %d of processor %d is wrong", what, i, k)
			}
		}
	}
}
