package matrix

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"volley/field"
	"volley/field/fieldtest"
)

// checkFactor compares the product of the layers, under the labels, with the
// matrix. It returns the factorisation.
func checkFactor(t *testing.T, m Matrix) *Factorisation {
	t.Helper()
	fact := Factor(m)
	if fact == nil || len(fact.Layers) == 0 {
		return nil
	}
	k := m.Rows()
	product := Product(fact.Layers)
	for i := range k {
		if got := fact.In.Processor(fact.In.Label(i)); got != i {
			t.Fatalf("%s over %s, K=%d: processor %d has a label of %d", m.ID(), m.Field().Name(), k, i, got)
		}
		for j := range k {
			if got, want := product.At(fact.In.Label(i), fact.Out.Label(j)), m.At(i, j); got != want {
				t.Fatalf("%s over %s, K=%d: layers give A[%d][%d] = %v, the matrix %v", m.ID(), m.Field().Name(), k, i, j, got, want)
			}
		}
	}
	return fact
}

// structured returns every matrix with structure that there is over f for k, by
// name.
func structured(t *testing.T, f field.Field, k int) map[string]Matrix {
	t.Helper()
	list := map[string]Matrix{}
	add := func(name string, m Matrix, err error) {
		if err == nil {
			list[name] = m
			list["transpose of "+name] = Transpose(m)
			inv, err := Inverse(m)
			if err != nil {
				t.Fatalf("%s over %s, K=%d: %v", name, f.Name(), k, err)
			}
			list["inverse of "+name] = inv
		}
	}
	m, err := DFT(f, k)
	add("dft", m, err)
	m, err = DFTReversed(f, k)
	add("dft-reversed", m, err)
	if p, err := CosetPoints(f, k); err == nil {
		add("vandermonde", Vandermonde(p), nil)
	}
	if p, err := PowerPoints(f, k); err == nil {
		add("vandermonde on powers", Vandermonde(p), nil)
	}
	m, err = LCH(f, k)
	add("lch", m, err)
	for _, base := range []uint64{0, 4, 9} {
		if p, err := MoorePoints(f, base, k); err == nil {
			m, err = Moore(p, base)
			add(fmt.Sprint("moore ", base), m, err)
		}
		m, err = Gabidulin(f, base, k)
		add(fmt.Sprint("gabidulin ", base), m, err)
	}
	m, err = Cauchy(f, k)
	add("cauchy", m, err)
	omega, err := CosetPoints(f, k)
	if err == nil {
		alpha, err := ShiftedCosetPoints(f, k, 1)
		if err == nil {
			m, err = Lagrange(omega, alpha)
			add("lagrange", m, err)
		}
	}
	return list
}

func TestFactor(t *testing.T) {
	found := map[string]int{}
	for _, name := range []string{"2^4", "2^8", "2^9", "97", "257", "3^4"} {
		f := fieldtest.Parse(t, name)
		for _, k := range []int{1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 28, 32, 36} {
			for family, m := range structured(t, f, k) {
				if checkFactor(t, m) != nil {
					found[family]++
				}
			}
		}
	}
	for _, family := range []string{"dft", "dft-reversed", "vandermonde", "vandermonde on powers", "lch", "moore 0", "gabidulin 0", "cauchy", "lagrange"} {
		for _, variant := range []string{"", "inverse of ", "transpose of "} {
			if found[variant+family] == 0 {
				t.Errorf("%s%s was never factored", variant, family)
			}
		}
	}
}

// TestFactorArrangement finds structure whatever the order of the points, and
// keeps labels shared where the cosets are made of the same processors.
func TestFactorArrangement(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	r := rand.New(rand.NewPCG(1, 2))
	omega, _ := ShiftedCosetPoints(f, 24, 0)
	alpha, _ := ShiftedCosetPoints(f, 24, 3)
	shuffle := func(p Points, perm []int) Points {
		list := elements(p)
		for k, at := range perm {
			list[k] = p.At(at)
		}
		q, err := NewPoints(f, list)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	perm := r.Perm(24)
	same, err := Lagrange(shuffle(omega, perm), shuffle(alpha, perm))
	if err != nil {
		t.Fatal(err)
	}
	fact := checkFactor(t, same)
	if fact == nil || fact.Half != 4 {
		t.Fatalf("shuffled alike: %+v", fact)
	}
	for k := range 24 {
		if fact.In.Label(k) != fact.Out.Label(k) {
			t.Fatal("shuffled alike, the labels are not shared")
		}
	}
	differ, err := Lagrange(omega, shuffle(alpha, perm))
	if err != nil {
		t.Fatal(err)
	}
	if fact := checkFactor(t, differ); fact == nil || len(fact.Layers) != 8 {
		t.Fatalf("shuffled differently: %+v", fact)
	}
	if fact := checkFactor(t, Vandermonde(shuffle(omega, perm))); fact == nil || len(fact.Layers) != 4 {
		t.Fatalf("vandermonde: %+v", fact)
	}
}

// TestFactorTowers finds fibres that are no cosets: theory of polynomial towers.
func TestFactorTowers(t *testing.T) {
	for _, c := range []struct {
		field   string
		k       int
		folds   []fold
		depth   int
		message string
	}{
		{"127", 16, []fold{{radix: 2}}, 4, "z^2-2"},
		{"107", 9, []fold{{radix: 3}}, 2, "z^3-3z"},
		{"107", 18, []fold{{radix: 3}}, 2, "z^3-3z"},
		{"127", 24, []fold{{radix: 2}}, 3, "z^2-2"},
	} {
		f := fieldtest.Parse(t, c.field)
		q := f.Order().Uint64()
		// Chebyshev-like map of the degree.
		apply := func(z field.Element) field.Element {
			v := field.Exp(f, z, uint64(c.folds[0].radix))
			if c.folds[0].radix == 2 {
				return f.Sub(v, field.Code(2))
			}
			return f.Sub(v, f.Mul(field.Code(3), z))
		}
		preimages := map[field.Element][]field.Element{}
		for z := range q {
			preimages[apply(field.Code(z))] = append(preimages[apply(field.Code(z))], field.Code(z))
		}
		fibre := func(top field.Element) []field.Element {
			list := []field.Element{top}
			for range c.depth {
				var below []field.Element
				for _, z := range list {
					if len(preimages[z]) != c.folds[0].radix {
						return nil
					}
					below = append(below, preimages[z]...)
				}
				list = below
			}
			return list
		}
		var sets []Points
		var points []field.Element
		for z := uint64(0); z < q && len(sets) < 2; z++ {
			points = append(points, fibre(field.Code(z))...)
			if len(points) == c.k {
				p, err := NewPoints(f, points)
				if err != nil {
					t.Fatal(err)
				}
				sets, points = append(sets, p), nil
			}
		}
		if len(sets) < 2 {
			t.Fatalf("%s over %s: too few fibres for K=%d", c.message, c.field, c.k)
		}
		m, err := Lagrange(sets[0], sets[1])
		if err != nil {
			t.Fatal(err)
		}
		fact := checkFactor(t, m)
		if fact == nil || fact.Half < c.depth {
			t.Errorf("%s over %s, K=%d: found %+v, want %d folds", c.message, c.field, c.k, fact, c.depth)
			continue
		}
		t.Log(fact.Structure)
		c, err := CauchyOn(sets[0], sets[1])
		if err != nil {
			t.Fatal(err)
		}
		if checkFactor(t, c) == nil {
			t.Error("no factorisation of the Cauchy matrix on the same points")
		}
	}
}

// TestFuse compares fused layers with their product, for every run of neighbours.
func TestFuse(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	omega, _ := ShiftedCosetPoints(f, 24, 0)
	alpha, _ := ShiftedCosetPoints(f, 24, 3)
	m, err := Lagrange(omega, alpha)
	if err != nil {
		t.Fatal(err)
	}
	layers := Factor(m).Layers
	want := Product(layers)
	for i := range layers {
		for j := i + 1; j <= len(layers); j++ {
			fused := Fuse(layers[i:j])
			list := append(append(append([]Layer{}, layers[:i]...), fused), layers[j:]...)
			if !Equal(Product(list), want) {
				t.Errorf("fusing layers %d to %d changes the product", i, j-1)
			}
			if got := Span(layers[i:j]).Size(); got != fused.Size() {
				t.Errorf("span of %d, fused of %d", got, fused.Size())
			}
		}
	}
	if inv := Product(Inverted(layers)); !Equal(must(Mul(want, inv))(t), Identity(f, 24)) {
		t.Error("the inverted layers are not the inverse")
	}
	if !Equal(Product(Transposed(layers)), Transpose(want)) {
		t.Error("the transposed layers are not the transpose")
	}
}

// TestFactorAnyPoints factors matrices on points drawn at random, of which some by
// chance, or because they are a fibre, have structure: what is found is right.
func TestFactorAnyPoints(t *testing.T) {
	found, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		f, err := field.Parse(rapid.SampledFrom([]string{"2^4", "2^3", "3^2", "13", "17", "5^2", "7", "19"}).Draw(rt, "field"))
		if err != nil {
			rt.Fatal(err)
		}
		q := int(f.Order().Int64())
		k := rapid.IntRange(2, min(q, 12)).Draw(rt, "K")
		codes := make([]int, q)
		for i := range codes {
			codes[i] = i
		}
		draw := func(name string) Points {
			list := make([]field.Element, k)
			for i, c := range rapid.Permutation(codes).Draw(rt, name)[:k] {
				list[i] = field.Code(uint64(c))
			}
			p, err := NewPoints(f, list)
			if err != nil {
				rt.Fatal(err)
			}
			return p
		}
		omega, alpha := draw("omega"), draw("alpha")
		lagrange, err := Lagrange(omega, alpha)
		if err != nil {
			rt.Fatal(err)
		}
		list := []Matrix{Vandermonde(omega), lagrange, Transpose(Vandermonde(alpha))}
		if cauchy, err := CauchyOn(omega, alpha); err == nil {
			list = append(list, cauchy)
		}
		for _, m := range list {
			all++
			if checkFactor(t, m) != nil {
				found++
			}
		}
	})
	t.Logf("%d of %d have structure", found, all)
	if found == 0 {
		t.Error("none has structure")
	}
}
