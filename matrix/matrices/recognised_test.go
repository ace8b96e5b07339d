package matrices

import (
	"strings"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
)

// TestRecognised lists the entries of named matrices: what is built of them has the layers of the named matrix, or some
// that take as much, and nothing has the layers where one entry is another.
func TestRecognised(t *testing.T) {
	t.Parallel()
	coset := Spec{Family: "cauchy", Omega: "coset", Alpha: "coset"}
	inverse := Spec{Family: "dft", Order: "reversed", Inverse: true}
	for _, c := range []struct {
		spec  Spec
		field string
		sizes []int
	}{
		{Spec{Family: "dft"}, "257", []int{4, 64}},
		{Spec{Family: "dft"}, "2^8", []int{15, 51}},
		{Spec{Family: "dft"}, "bls12-381", []int{12}},
		{Spec{Family: "dft", Inverse: true}, "127", []int{42}},
		{Spec{Family: "dft", Order: "reversed"}, "257", []int{4, 64}},
		{Spec{Family: "dft", Order: "reversed:6"}, "127", []int{42}},
		{inverse, "61", []int{60}},
		{inverse, "2^8", []int{51}},
		{Spec{Family: "cauchy"}, "2^8", []int{4, 24, 60, 64}},
		{coset, "257", []int{24, 64}},
		{coset, "2^8", []int{15, 30}},
		{coset, "goldilocks", []int{16}},
		{Spec{Family: "fti"}, "2^16", []int{16}},
		{Spec{Family: "vandermonde"}, "97", []int{18}},
		{Spec{Family: "rs:par2"}, "2^4", []int{8}},
	} {
		for _, k := range c.sizes {
			f := fieldtest.Parse(t, c.field)
			m := must(c.spec.Build(f, k, k))(t)
			entries := matrix.DenseOf(m)
			listed := Spec{Family: "file", Argument: "A.csv"}
			got := must(listed.BuildFrom(f, k, k, nil, entries))(t)
			if points := matrix.StructureOf(got).Points; got.ID() != entries.ID() || points != nil {
				t.Errorf("%s over %s, K = %d: listed it is %s on %v", m.ID(), c.field, k, got.ID(), points)
			}
			want, fact := must(matrix.Factor(t.Context(), m, nil))(t), checkFactor(t, got)
			switch {
			case want == nil || fact == nil:
				if want != nil || fact != nil {
					t.Errorf("%s over %s, K = %d: %v where its entries are listed, by name %v", m.ID(), c.field, k, fact, want)
				}
			case fact.Name != want.Name || fact.Work() != want.Work() || fact.Natural(k) != want.Natural(k) ||
				!strings.HasPrefix(fact.Structure, want.Name+" by its entries") || !strings.HasSuffix(fact.Structure, ": "+want.Structure):
				t.Errorf("%s over %s, K = %d: %s of work %d, by name %s, %s, of %d",
					m.ID(), c.field, k, fact.Structure, fact.Work(), want.Name, want.Structure, want.Work())
			}
			for _, place := range [][2]int{{0, 0}, {0, k - 1}, {k - 1, 0}, {1, 1}, {k / 2, k / 3}, {k - 1, k - 1}} {
				other := matrix.DenseOf(m)
				other.Set(place[0], place[1], f.Add(other.At(place[0], place[1]), field.One))
				if got := must(listed.BuildFrom(f, k, k, nil, other))(t); got != matrix.Matrix(other) {
					t.Errorf("%s over %s, K = %d: recognised with another entry at %v", m.ID(), c.field, k, place)
				}
			}
		}
	}
}

// TestRecognisedSmall has every matrix of 2×2, and 1×1: layers and inverse are those of its entries.
func TestRecognisedSmall(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"2", "3", "2^2", "5", "7"} {
		f := fieldtest.Parse(t, name)
		q := int(f.Order().Int64())
		for k := 1; k <= 2; k++ {
			for number := range intPower(q, k*k) {
				d := matrix.DenseFunc(f, k, k, func(i, j int) field.Element { return field.Code(uint64(number / intPower(q, i*k+j) % q)) })
				m := matrix.Recognised(d)
				checkFactor(t, m)
				got, err := matrix.Inverse(t.Context(), m)
				want, unwanted := matrix.Inverse(t.Context(), d)
				if (err == nil) != (unwanted == nil) || err == nil && !equal(got, want) {
					t.Fatalf("over %s, matrix number %d of %d×%d: inverse %v, %v, want %v, %v", name, number, k, k, got, err, want, unwanted)
				}
			}
		}
	}
}

// TestRecognisedBlocks lists the entries of matrices of more rows than columns, whose blocks have structure then.
func TestRecognisedBlocks(t *testing.T) {
	t.Parallel()
	f := fieldtest.Parse(t, "2^8")
	for family, r := range map[string]int{"cauchy": 32, "vandermonde": 15} {
		entries := matrix.DenseOf(must(Spec{Family: family}.Build(f, 3*r, r))(t))
		m := must(Spec{Family: "file", Argument: "A.csv"}.BuildFrom(f, 3*r, r, nil, entries))(t)
		for first := 0; first < 3*r; first += r {
			if checkBlock(t, m, first, r) == nil {
				t.Errorf("%s: no structure in the rows from %d", family, first)
			}
		}
	}
}

func intPower(base, exponent int) int {
	n := 1
	for range exponent {
		n *= base
	}
	return n
}
