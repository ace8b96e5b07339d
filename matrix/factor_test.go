package matrix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/pointset"
)

// multiplied returns the product of one or more layers, entry by entry.
func multiplied(layers []Layer) *Dense {
	p := DenseOf(Identity(layers[0].Field(), layers[0].K))
	for _, l := range layers {
		m := DenseFunc(l.Field(), l.K, l.K, func(i, j int) field.Element {
			if l.Group(i) != l.Group(j) {
				return field.Element{}
			}
			return l.At(l.Group(i), l.Index(i), l.Index(j))
		})
		var err error
		if p, err = Mul(p, m); err != nil {
			panic(err) // all are K×K over one field
		}
	}
	return p
}

// checkFactor compares the product of the layers, under the labels, with the
// matrix. It returns the factorisation.
func checkFactor(t *testing.T, m Matrix) *Factorisation {
	t.Helper()
	fact := must(Factor(t.Context(), m, nil))(t)
	if fact == nil || len(fact.Layers) == 0 {
		return nil
	}
	k := m.Rows()
	product := multiplied(fact.Layers)
	for i := range k {
		if got := fact.Input.Processor(fact.Input.Label(i)); got != i {
			t.Fatalf("%s over %s, K=%d: processor %d has a label of %d", m.ID(), m.Field().Name(), k, i, got)
		}
		for j := range k {
			if got, want := product.At(fact.Input.Label(i), fact.Output.Label(j)), m.At(i, j); got != want {
				t.Fatalf("%s over %s, K=%d: layers give A[%d][%d] = %v, the matrix %v", m.ID(), m.Field().Name(), k, i, j, got, want)
			}
		}
	}
	return fact
}

// structured returns every matrix with structure that there is over f for k, by
// name, with its transpose and its inverse.
func structured(t *testing.T, f field.Field, k int) map[string]Matrix {
	t.Helper()
	list := map[string]Matrix{}
	add := func(name string, m Matrix, err error) {
		if err == nil {
			list[name] = m
			list["transpose of "+name] = Transpose(m)
			list["inverse of "+name] = must(Inverse(t.Context(), m))(t)
		}
	}
	m, err := DFT(f, k)
	add("dft", m, err)
	m, err = DFTReversed(f, k, nil)
	add("dft-reversed", m, err)
	m, err = LCH(f, k, k)
	add("lch", m, err)
	m, err = Cauchy(f, k, k)
	add("cauchy", m, err)
	if omega, err := CosetPoints(f, k); err == nil {
		add("vandermonde", Vandermonde(omega, 0), nil)
		add("vandermonde on powers", Vandermonde(pointset.PowersFrom(f, 0, k), 0), nil)
		if alpha, err := ShiftedCosetPoints(f, k, 1); err == nil {
			m, err = Lagrange(omega, alpha)
			add("lagrange", m, err)
		}
	}
	return list
}

func TestFactor(t *testing.T) {
	found := map[string]int{}
	for _, name := range []string{"2^4", "2^8", "2^9", "97", "257"} {
		f := fieldtest.Parse(t, name)
		for _, k := range []int{1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 28, 32, 36} {
			for family, m := range structured(t, f, k) {
				if checkFactor(t, m) != nil {
					found[family]++
				}
			}
		}
	}
	for _, family := range []string{"dft", "dft-reversed", "vandermonde", "vandermonde on powers", "lch", "cauchy", "lagrange"} {
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
	f, perm := fieldtest.Parse(t, "257"), rand.New(rand.NewPCG(1, 2)).Perm(24)
	omega, alpha := must(ShiftedCosetPoints(f, 24, 0))(t), must(ShiftedCosetPoints(f, 24, 3))(t)
	shuffle := func(p Points) Points {
		list := pointset.Elements(nil, p)
		for k, from := range perm {
			list[k] = p.At(from)
		}
		return must(NewPoints(f, list))(t)
	}
	same := checkFactor(t, must(Lagrange(shuffle(omega), shuffle(alpha)))(t))
	if same == nil || same.Half != 4 {
		t.Fatalf("shuffled alike: %+v", same)
	}
	for k := range 24 {
		if same.Input.Label(k) != same.Output.Label(k) {
			t.Fatal("shuffled alike, the labels are not shared")
		}
	}
	if fact := checkFactor(t, must(Lagrange(omega, shuffle(alpha)))(t)); fact == nil || len(fact.Layers) != 8 {
		t.Errorf("shuffled differently: %+v", fact)
	}
	if fact := checkFactor(t, Vandermonde(shuffle(omega), 0)); fact == nil || len(fact.Layers) != 4 {
		t.Errorf("vandermonde: %+v", fact)
	}
}

// TestFactorFolds finds the composition of folds whose full fibres the points are, in
// the order of their codes, and says what it is.
func TestFactorFolds(t *testing.T) {
	for _, c := range []struct {
		field string
		folds []fold
		k     int
		want  string
	}{
		{"257", []fold{{radix: 2}, {radix: 2}}, 12, "3 cosets of the multiplicative subgroup of order 4"},
		{"257", []fold{{radix: 2}, {radix: 2}}, 4, "a coset of the multiplicative subgroup of order 4"},
		{"2^6", []fold{{radix: 3}}, 12, "4 cosets of the multiplicative subgroup of order 3"},
		{"2^6", []fold{{radix: 2, linear: field.Code(37)}}, 10, "5 cosets of an additive subgroup of order 2"},
		{"2^6", []fold{{radix: 3}, {radix: 2, linear: field.Code(37)}}, 6, "1 full fibre of a composition of degree 6: z^3, z^2 + 37·z"},
	} {
		f := fieldtest.Parse(t, c.field)
		degree := 1
		for _, p := range c.folds {
			degree *= p.radix
		}
		fibres := map[field.Element][]field.Element{}
		var images []field.Element // of full fibres, in the order of their last points
		for code := range f.Order().Uint64() {
			v := field.Code(code)
			for _, p := range c.folds {
				v = f.Add(field.Exp(f, v, uint64(p.radix)), f.Mul(p.linear, v))
			}
			fibres[v] = append(fibres[v], field.Code(code))
			if len(fibres[v]) == degree {
				images = append(images, v)
			}
		}
		if len(images) < 2*c.k/degree {
			t.Fatalf("%s over %s: %d full fibres", c.want, c.field, len(images))
		}
		set := func(images []field.Element) Points {
			var list []field.Element
			for _, v := range images[:c.k/degree] {
				list = append(list, fibres[v]...)
			}
			slices.SortFunc(list, func(a, b field.Element) int { return a.Int().Cmp(b.Int()) })
			return must(NewPoints(f, list))(t)
		}
		fact := checkFactor(t, must(Lagrange(set(images), set(images[c.k/degree:])))(t))
		if fact == nil || fact.Structure != "both point sets "+c.want {
			t.Errorf("over %s found %+v, want %s", c.field, fact, c.want)
		}
	}
}

// TestFactorNatural: nothing has to move where points that are alike stand alike, and
// the labels say so at once where they are the processors.
func TestFactorNatural(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	list := func(swap int) Points { // processors 1 and 1+swap have changed places
		p := pointset.Elements(nil, must(CosetPoints(f, 24))(t))
		p[1], p[1+swap] = p[1+swap], p[1]
		return must(NewPoints(f, p))(t)
	}
	for _, c := range []struct {
		name            string
		m               Matrix
		natural, atOnce bool
	}{
		{"cosets in order", Vandermonde(list(0), 0), true, true},
		{"cosets out of order", Vandermonde(list(1), 0), false, false},
		{"both out of order alike", must(Lagrange(list(1), list(1)))(t), true, false},
		{"one out of order", must(Lagrange(list(0), list(1)))(t), false, false},
		{"the other out of order", must(Lagrange(list(1), list(0)))(t), false, false},
		{"dft", must(DFT(f, 4))(t), false, false},
		{"inverse dft", must(Inverse(t.Context(), must(DFT(f, 4))(t)))(t), false, false},
		{"reversed dft", must(DFTReversed(f, 4, nil))(t), true, true},
		{"dft of two", must(DFT(f, 2))(t), true, false},
	} {
		fact := checkFactor(t, c.m)
		if fact == nil {
			t.Errorf("%s: no structure", c.name)
			continue
		}
		if got := fact.Natural(c.m.Rows()); got != c.natural {
			t.Errorf("%s: natural %v, want %v", c.name, got, c.natural)
		}
		if got := fact.Input.label == nil && fact.Output.label == nil; got != c.atOnce {
			t.Errorf("%s: without labels %v, want %v", c.name, got, c.atOnce)
		}
	}
}

// TestFactorLayers has the layers by name, and what is said of the structure.
func TestFactorLayers(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	lagrange := must(Lagrange(must(CosetPoints(f, 12))(t), must(ShiftedCosetPoints(f, 12, 3))(t)))(t)
	vandermonde := Vandermonde(must(CosetPoints(f, 6))(t), 0)
	for _, c := range []struct {
		m         Matrix
		half      int
		want, say string
	}{
		{must(DFT(f, 4))(t), 0, "[stage stage]", "radices 2·2"},
		{must(LCH(fieldtest.Parse(t, "2^8"), 12, 12))(t), 0, "[draw loose loose]", "3 cosets of an additive subgroup of order 4"},
		{vandermonde, 0, "[draw loose]", "3 cosets of the multiplicative subgroup of order 2"},
		{Transpose(vandermonde), 0, "[transposed loose transposed draw]", "3 cosets of the multiplicative subgroup of order 2"},
		{must(Inverse(t.Context(), vandermonde))(t), 0, "[inverse loose inverse draw]", "3 cosets of the multiplicative subgroup of order 2"},
		{lagrange, 3, "[inverse loose inverse loose inverse draw draw loose loose]", "both point sets 3 cosets of the multiplicative subgroup of order 4"},
		{Transpose(lagrange), 3, "[transposed loose transposed loose transposed draw transposed inverse draw transposed inverse loose transposed inverse loose]",
			"both point sets 3 cosets of the multiplicative subgroup of order 4"},
	} {
		fact := must(Factor(t.Context(), c.m, nil))(t)
		if got := fmt.Sprint(layerNames(fact.Layers)); got != c.want || fact.Half != c.half || fact.Structure != c.say {
			t.Errorf("%s, K = %d: %s with %d of the inverse, %s, want %s with %d, %s", c.m.ID(), c.m.Rows(), got, fact.Half, fact.Structure, c.want, c.half, c.say)
		}
		if got := layerNames(transposedLayers(transposedLayers(fact.Layers))); !slices.Equal(got, layerNames(fact.Layers)) {
			t.Errorf("%s: transposed twice they are called %v", c.m.ID(), got)
		}
	}
	layers := must(Factor(t.Context(), lagrange, nil))(t).Layers
	for _, c := range []struct {
		from, to int
		want     string
	}{{0, 1, "inverse loose"}, {0, 2, "inverse loose"}, {1, 3, "fused"}, {4, 6, "loose"}, {0, 6, "fused"}} {
		if got := Fuse(layers[c.from:c.to]).Name; got != c.want {
			t.Errorf("layers %d to %d fused are called %q, want %q", c.from, c.to-1, got, c.want)
		}
	}
}

func layerNames(layers []Layer) []string {
	var names []string
	for _, l := range layers {
		names = append(names, l.Name)
	}
	return names
}

// TestFactorMany: points are searched for structure up to 2^17 of them.
func TestFactorMany(t *testing.T) {
	f := fieldtest.Parse(t, "2147483647")
	for n, want := range map[int]bool{mostSearched: true, mostSearched + 2: false} {
		list := pointset.Elements(nil, must(CosetPoints(f, n))(t))
		for i, z := range list {
			list[i] = f.Sub(field.Element{}, z)
		}
		p := pointset.Listed(f, list) // pairs z, -z; that they are cosets does not show
		for _, m := range []Matrix{Vandermonde(p, 0), must(Lagrange(p, p))(t)} {
			if got := must(Factor(t.Context(), m, nil))(t) != nil; got != want {
				t.Errorf("%s of %d points: structure %v, want %v", m.ID(), n, got, want)
			}
		}
	}
}

// TestFuse compares fused layers with their product, for every run of neighbours.
func TestFuse(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	m := must(Lagrange(must(CosetPoints(f, 24))(t), must(ShiftedCosetPoints(f, 24, 3))(t)))(t)
	layers := must(Factor(t.Context(), m, nil))(t).Layers
	want := multiplied(layers)
	for i := range layers {
		for j := i + 1; j <= len(layers); j++ {
			fused := Fuse(layers[i:j])
			list := append(append(append([]Layer{}, layers[:i]...), fused), layers[j:]...)
			if !Equal(multiplied(list), want) {
				t.Errorf("fusing layers %d to %d changes the product", i, j-1)
			}
			if got := Span(layers[i:j]).Size(); got != fused.Size() {
				t.Errorf("span of %d, fused of %d", got, fused.Size())
			}
		}
	}
	if inv := multiplied(invertedLayers(layers)); !Equal(must(Mul(want, inv))(t), Identity(f, 24)) {
		t.Error("the inverted layers are not the inverse")
	}
	if !Equal(multiplied(transposedLayers(layers)), Transpose(want)) {
		t.Error("the transposed layers are not the transpose")
	}
}

// TestFuseAlike counts the entries of which fused layers are made: of groups that have one matrix once. The matrices in
// the middle of a Cauchy matrix on cosets are one for all of a coset.
func TestFuseAlike(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	lch, cauchy := must(LCH(f, 256, 256))(t), must(Cauchy(f, 48, 48))(t)
	for _, c := range []struct {
		m           Matrix
		first, most int
	}{ // 4 rows of an LCH matrix, with 6 terms each; 3 of 3 and 3
		{lch, 0, 24}, {lch, 2, 4 * 24}, {lch, 4, 16 * 24}, {lch, 6, 64 * 24}, {cauchy, 4, 18},
	} {
		layers, entries := slices.Clone(must(Factor(t.Context(), c.m, nil))(t).Layers[c.first:c.first+2]), 0
		for i := range layers {
			at := layers[i].entry
			layers[i].entry = func(group, i, j int) field.Element { entries++; return at(group, i, j) }
		}
		if multiplied([]Layer{Fuse(layers)}); entries == 0 || entries > c.most {
			t.Errorf("%s: layers %d and %d take %d entries, want %d at most", c.m.ID(), c.first, c.first+1, entries, c.most)
		}
	}
}

// TestFactorAnyPoints factors matrices on points drawn at random, of which some by
// chance, or because they are a fibre, have structure: what is found is right.
func TestFactorAnyPoints(t *testing.T) {
	rng, found := rand.New(rand.NewPCG(1, 2)), 0
	for _, name := range []string{"2^4", "2^3", "13", "17", "7", "19"} {
		f := fieldtest.Parse(t, name)
		q := int(f.Order().Int64())
		for range 15 {
			k := 2 + rng.IntN(min(q, 12)-1)
			draw := func() Points {
				list := make([]field.Element, k)
				for i, c := range rng.Perm(q)[:k] {
					list[i] = field.Code(uint64(c))
				}
				return must(NewPoints(f, list))(t)
			}
			omega, alpha := draw(), draw()
			list := []Matrix{Vandermonde(omega, 0), Transpose(Vandermonde(alpha, 0)), must(Lagrange(omega, alpha))(t)}
			if cauchy, err := CauchyOn(omega, alpha); err == nil {
				list = append(list, cauchy)
			}
			for _, m := range list {
				if checkFactor(t, m) != nil {
					found++
				}
			}
		}
	}
	if found == 0 {
		t.Error("none has structure")
	}
}
