package conditional

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"volley/algo"
	"volley/algo/algotest"
	"volley/algo/schedule"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// liftKinds returns matrices of every kind, by name.
func liftKinds(t testing.TB, f field.Field, k int) map[string]matrix.Matrix {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(k), 7))
	sampler := field.NewSampler(f)
	draw := func() field.Element { return sampler.Draw(rng.Uint64) }
	order := rng.Perm(k)
	left, right := [2][]field.Element{}, [2][]field.Element{}
	for n := range left {
		for range k {
			left[n], right[n] = append(left[n], draw()), append(right[n], draw())
		}
	}
	list := map[string]matrix.Matrix{}
	for name, entry := range map[string]func(i, j int) field.Element{
		"zero":     func(i, j int) field.Element { return field.Element{} },
		"ones":     func(i, j int) field.Element { return field.One },
		"identity": func(i, j int) field.Element { return field.Code(uint64(max(0, 1-max(i-j, j-i)))) },
		"permutation": func(i, j int) field.Element {
			if order[i] == j {
				return field.One
			}
			return field.Element{}
		},
		"sparse": func(i, j int) field.Element {
			if rng.IntN(10) > 0 {
				return field.Element{}
			}
			return draw()
		},
		"rank 2": func(i, j int) field.Element {
			return f.Add(f.Mul(left[0][i], right[0][j]), f.Mul(left[1][i], right[1][j]))
		},
		"lower": func(i, j int) field.Element {
			if i <= j {
				return field.Element{}
			}
			return draw()
		},
		"random": func(i, j int) field.Element { return draw() },
	} {
		d := matrix.NewDense(f, k, k)
		for i := range k {
			for j := range k {
				d.Set(i, j, entry(i, j))
			}
		}
		list[name] = d
	}
	return list
}

// checkLiftedRandom runs a plan on random vectors and compares with xA: a wrong plan passes
// with probability at most q^-vectors. Packets are as short as verify.Check's are long.
func checkLiftedRandom(t *testing.T, p plan.Plan, a matrix.Matrix, vectors int) {
	t.Helper()
	if err := plan.Validate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f, k := a.Field(), a.Rows()
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	sampler := field.NewSampler(f)
	bytes := vectors * f.SymbolBytes()
	memory := make([][][]byte, k)
	inputs := make([][]byte, k)
	for i := range inputs {
		inputs[i] = make([]byte, bytes)
		for n := range vectors {
			field.PutSymbol(f, inputs[i][n*f.SymbolBytes():], sampler.Draw(rng.Uint64))
		}
		memory[i] = [][]byte{inputs[i]}
	}
	m, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	combine := func(coefs []field.Element, src [][]byte) []byte {
		dst := make([]byte, bytes)
		f.Combine(dst, coefs, src)
		return dst
	}
	compute := func(proc int, list []plan.Combination) {
		for _, c := range list {
			var coefs []field.Element
			var src [][]byte
			for _, term := range c {
				coefs, src = append(coefs, term.Coef), append(src, memory[proc][term.Slot])
			}
			memory[proc] = append(memory[proc], combine(coefs, src))
		}
	}
	for r := range m.Common.Rounds() {
		wire := map[[2]int][][]byte{}
		for proc, prog := range m.Programs {
			compute(proc, prog.Rounds[r].Compute)
			for _, s := range prog.Rounds[r].Sends {
				for _, slot := range s.Slots {
					at := [2]int{s.Dst, s.Port}
					wire[at] = append(wire[at], memory[proc][slot])
				}
			}
		}
		for proc, prog := range m.Programs {
			for _, x := range prog.Rounds[r].Recvs {
				memory[proc] = append(memory[proc], wire[[2]int{proc, x.Port}]...)
			}
		}
	}
	for proc, prog := range m.Programs {
		compute(proc, prog.Compute)
		coefs := make([]field.Element, k)
		for i := range coefs {
			coefs[i] = a.At(i, proc)
		}
		if want := combine(coefs, inputs); string(memory[proc][prog.Outputs[0]]) != string(want) {
			t.Fatalf("K=%d: processor %d has another result", k, proc)
		}
	}
}

// checkLiftedClasses compares the costs counted from classes with those of all processors,
// which do fewer multiply-adds where coefficients are zero.
func checkLiftedClasses(t *testing.T, p plan.Plan) {
	t.Helper()
	all, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	got, want := sim.Count(p), sim.Count(all)
	if got.C3 < want.C3 {
		t.Errorf("C3 = %d, counted %d", got.C3, want.C3)
	}
	got.C3 = want.C3
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v from classes, %+v from all", got, want)
	}
}

// liftedPlan is the lifted plan for a matrix whether or not it pays.
func liftedPlan(t testing.TB, a matrix.Matrix, ports int, corrected bool) (plan.Plan, *lifted) {
	t.Helper()
	k := a.Rows()
	shape, ok := newLiftedShape(k, ports)
	if !ok {
		t.Fatalf("K=%d has no shape", k)
	}
	s := &lifted{shape, corrected, newLiftedCoding(shape, a, nil, corrected)}
	return schedule.Compile(plan.Info{Algorithm: "lifted", Field: a.Field(), Processors: k, Ports: ports}, schedule.Whole(s, k, a.At)), s
}

// TestLifted compares corrected lifted plans with matrices of every kind over the
// smallest fields.
func TestLifted(t *testing.T) {
	for _, c := range []struct {
		k, ports int
		field    string
		C2       int
	}{
		{12, 1, "3", 6}, {27, 1, "2^2", 9}, {24, 1, "3", 9}, {54, 1, "5", 13}, {48, 1, "5", 12}, {96, 1, "5", 17},
		{75, 1, "7", 15}, {75, 1, "257", 15}, {75, 1, "bls12-381", 15}, {150, 1, "7", 21}, {108, 1, "2^8", 18},
		{12, 2, "3", 3}, {27, 2, "2^2", 5}, {48, 2, "5", 6}, {48, 3, "5", 5}, {54, 2, "2^2", 7}, {54, 3, "2^2", 5}, {75, 3, "7", 6}, {75, 9, "7", 3}, {48, 4, "5", 3}, {96, 4, "5", 5},
	} {
		t.Run(fmt.Sprintf("K=%d p=%d over %s", c.k, c.ports, c.field), func(t *testing.T) {
			t.Parallel()
			for name, a := range liftKinds(t, fieldtest.Parse(t, c.field), c.k) {
				p, _ := liftedPlan(t, a, c.ports, true)
				if err := verify.Check(t.Context(), p, a); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if got := sim.Count(p).C2; got != c.C2 {
					t.Errorf("%s: C2 = %d, want %d", name, got, c.C2)
				}
			}
		})
	}
}

// TestLiftedSuperregular compares plans without the correction, for Cauchy matrices.
func TestLiftedSuperregular(t *testing.T) {
	for _, c := range []struct {
		k, ports int
		field    string
		C2       int
	}{
		{12, 1, "2^8", 5}, {24, 1, "2^8", 7}, {27, 1, "2^8", 8}, {54, 1, "2^8", 11}, {48, 1, "2^8", 11}, {75, 1, "2^8", 14}, {96, 1, "2^8", 15},
		{96, 1, "257", 15}, {27, 2, "2^8", 5}, {96, 2, "2^8", 8}, {96, 3, "2^8", 7},
	} {
		t.Run(fmt.Sprintf("K=%d p=%d over %s", c.k, c.ports, c.field), func(t *testing.T) {
			t.Parallel()
			a := algotest.Cauchy(t, fieldtest.Parse(t, c.field), c.k)
			p, s := liftedPlan(t, a, c.ports, false)
			if _, _, ok := s.coding.regular(new(algo.Problem)); !ok {
				t.Error("a minor is zero")
			}
			if err := verify.Check(t.Context(), p, a); err != nil {
				t.Error(err)
			}
			if got := sim.Count(p).C2; got != c.C2 {
				t.Errorf("C2 = %d, want %d", got, c.C2)
			}
		})
	}
}

// TestLiftedCost compares counted costs with the formulas: for all h up to 12 and p up
// to 6, and the theory's for p = 1.
func TestLiftedCost(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	up := func(a, b int) int { return (a + b - 1) / b }
	for levels, cosets := range map[int]int{2: 3, 3: 6} {
		for h := 2; h <= 12; h++ {
			for ports := 1; ports <= 6; ports++ {
				for _, corrected := range []bool{false, true} {
					k := cosets * h * h
					shape, ok := newLiftedShape(k, ports)
					if !ok || shape.size() != k {
						t.Fatalf("K=%d: %+v, %v", k, shape, ok)
					}
					s := &lifted{shape, corrected, nil}
					p := schedule.Compile(plan.Info{Field: f, Processors: k, Ports: ports}, schedule.Whole(s, k, nil))
					got := sim.Count(p)
					least := pair{schedule.Clog(h, ports) + (levels-1)*up(h, ports) + 1 + schedule.Clog(up(h, ports), ports), up(h-1, ports) + levels*up(h, ports)}
					most := least
					if corrected {
						most = pair{least.C1 + up(levels-1, ports), least.C2 + up(levels-1, ports)}
					}
					if ports == 1 && corrected {
						least = most
					}
					if got.C1 != s.cost().C1 || got.C2 != s.cost().C2 || got.C1 < least.C1 || got.C1 > most.C1 || got.C2 < least.C2 || got.C2 > most.C2 {
						t.Errorf("T=%d h=%d p=%d, corrected %v: counted %d/%d, formula %v, want %v to %v", levels, h, ports, corrected, got.C1, got.C2, s.cost(), least, most)
					}
				}
			}
		}
	}
	for k, c2 := range map[int][2]int{ // corrected and not, p = 1
		24: {9, 7}, 27: {9, 8}, 54: {13, 11}, 75: {15, 14}, 96: {17, 15}, 150: {21, 19}, 384: {33, 31}, 1536: {65, 63}, 9600: {161, 159},
	} {
		for n, corrected := range []bool{true, false} {
			shape, _ := newLiftedShape(k, 1)
			if s := (&lifted{shape, corrected, nil}); s.cost().C2 != c2[n] {
				t.Errorf("K=%d: C2 = %d, want %d", k, s.cost().C2, c2[n])
			}
		}
	}
}

// TestLiftedLarge checks larger plans by random vectors.
func TestLiftedLarge(t *testing.T) {
	for _, c := range []struct{ k, ports, C1, C2 int }{{192, 1, 16, 24}, {216, 2, 11, 13}, {216, 3, 9, 9}, {384, 1, 25, 33}} {
		t.Run(fmt.Sprintf("K=%d p=%d", c.k, c.ports), func(t *testing.T) {
			t.Parallel()
			f := fieldtest.Parse(t, "11")
			rank1 := matrix.NewDense(f, c.k, c.k)
			for i := range c.k {
				for j := range i {
					rank1.Set(i, j, field.Code(uint64((i+1)*(j*j+1)%11)))
				}
			}
			for _, a := range []matrix.Matrix{algotest.Random(t, f, c.k, 1), identity(f, c.k), rank1} {
				p, _ := liftedPlan(t, a, c.ports, true)
				checkLiftedRandom(t, p, a, 16)
				checkLiftedClasses(t, p)
				if got := sim.Count(p); got.C1 != c.C1 || got.C2 != c.C2 {
					t.Errorf("%d/%d, want %d/%d", got.C1, got.C2, c.C1, c.C2)
				}
			}
		})
	}
}

// liftPlans returns the plans for a matrix, which is to have some.
func liftPlans(t testing.TB, family func(*algo.Problem) ([]plan.Plan, error), a matrix.Matrix, ports, over int) []plan.Plan {
	t.Helper()
	p, err := algo.NewProblem(a, ports, algo.Natural)
	if err != nil {
		t.Fatal(err)
	}
	p.Limits.Rounds = algo.FewestPlus(over)
	plans, err := family(p)
	if err != nil {
		t.Fatalf("K=%d p=%d over %s: %v", a.Rows(), ports, a.Field().Name(), err)
	}
	return plans
}

// TestLiftedPlans checks which plan there is for a problem.
func TestLiftedPlans(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		a          matrix.Matrix
		ports      int
		C2         int
		parameters string
	}{
		{algotest.Cauchy(t, f, 24), 1, 7, "T=3 h=2"},
		{algotest.Cauchy(t, f, 96), 1, 15, "T=3 h=4"},
		{matrix.Transpose(algotest.Cauchy(t, f, 96)), 1, 15, "T=3 h=4"}, // by looking at its minors
		{algotest.Random(t, f, 24, 1), 1, 7, "T=3 h=2"},
		{algotest.Random(t, f, 75, 1), 1, 14, "T=2 h=5"},
		{algotest.Random(t, f, 75, 8), 1, 14, "T=2 h=5 relabelled"},
		{identity(f, 75), 1, 15, "T=2 h=5 corrected"},
		{algotest.Random(t, fieldtest.Parse(t, "7"), 75, 1), 1, 15, "T=2 h=5 corrected"},
		{identity(f, 147), 2, 11, "T=2 h=7 corrected"}, // a free port for the correction
		{identity(f, 48), 4, 3, "T=2 h=4 corrected"},   // in as many rounds as universal with 4
	} {
		plans := liftPlans(t, Lifted, c.a, c.ports, -1)
		info := plans[0].Info()
		got := sim.Count(plans[0])
		if len(plans) != 1 || got.C2 != c.C2 || info.Parameters != c.parameters {
			t.Errorf("%s, K=%d: %d plans, the first of %d packets, %s; want one of %d, %s", c.a.ID(), c.a.Rows(), len(plans), got.C2, info.Parameters, c.C2, c.parameters)
		}
		if err := verify.Check(t.Context(), plans[0], c.a); err != nil {
			t.Errorf("%s, K=%d, %s: %v", c.a.ID(), c.a.Rows(), info.Parameters, err)
		}
		checkLiftedClasses(t, plans[0])
	}
}

// TestLiftedRefusals checks that every refusal says why.
func TestLiftedRefusals(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		a     matrix.Matrix
		ports int
		over  int
		want  string
	}{
		{algotest.Cauchy(t, f, 25), 1, -1, "K is neither 3·h² nor 6·h²"},
		{identity(fieldtest.Parse(t, "5"), 75), 1, -1, "the minor of rows 25 to 29 and columns 0 6 12 18 24 is zero, and to correct it takes a field of more than h = 5 elements"},
		{identity(f, 24), 1, -1, "corrected it has 9 packets, universal has 8"},
		{algotest.Cauchy(t, f, 12), 1, -1, "5 packets, universal has 5"},
		{algotest.Cauchy(t, f, 96), 1, 2, "13 rounds, more than the 9 allowed"},
		{identity(f, 3*33*33), 1, -1, "h = 33"},
		{matrix.NewDense(f, 24, 20), 1, -1, "sources and 20 sinks"},
	} {
		p := &algo.Problem{Matrix: c.a, Ports: c.ports, Limits: algo.Limits{Rounds: algo.FewestPlus(c.over)}}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		_, err := Lifted(p)
		if !errors.Is(err, schedule.ErrStructure) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("K=%d: %v, want an ErrStructure with %q", c.a.Rows(), err, c.want)
		}
	}
}

// TestLiftedOnDemand makes one program of a large plan, for which it looks at as much of
// A as it takes, and no more.
func TestLiftedOnDemand(t *testing.T) {
	for _, c := range []struct {
		k         int
		corrected bool
		most      func(h int) int
	}{
		{3 * 20 * 20, false, func(h int) int { return 3 * h * h * h }},
		{6 * 20 * 20, false, func(h int) int { return 10 * h * h * h }},
		{3 * 12 * 12, true, func(h int) int { return 3 * h * h * h * h }},
		{6 * 12 * 12, true, func(h int) int { return 6 * h * h * h * h }},
	} {
		f := fieldtest.Parse(t, "2^16")
		shape, _ := newLiftedShape(c.k, 1)
		asked := 0
		a := askedMatrix{algotest.Cauchy(t, f, c.k), &asked}
		s := &lifted{shape, c.corrected, newLiftedCoding(shape, a, nil, c.corrected)}
		p := schedule.Compile(plan.Info{Algorithm: "lifted", Field: f, Processors: c.k, Ports: 1}, schedule.Whole(s, c.k, a.At))
		if _, err := p.Program(c.k / 2); err != nil {
			t.Fatal(err)
		}
		if most := c.most(shape.h); asked > most {
			t.Errorf("K=%d, corrected %v: looks at %d entries, at most %d", c.k, c.corrected, asked, most)
		}
	}
}
