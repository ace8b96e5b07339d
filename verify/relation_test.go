package verify_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/verify"
)

// relation returns the relation of the matrix with k rows and as many columns, each e symbols for a row or column apart.
func relation(f field.Field, seed verify.Seed, a [][]field.Element) *verify.Relation {
	n, columns := f.SymbolBytes(), len(a[0])
	weights := slices.Collect(slices.Chunk(verify.RelationWeights(f, seed, columns), verify.RelationBytes(f)))
	var products [][]byte
	for _, row := range a {
		p := make([]byte, verify.RelationBytes(f))
		for at := 0; at < len(p); at += n {
			var sum field.Element
			for j, e := range row {
				sum = f.Add(sum, f.Mul(field.Symbol(f, weights[j][at:]), e))
			}
			field.PutSymbol(f, p[at:], sum)
		}
		products = append(products, p)
	}
	return verify.NewRelation(f, products, weights)
}

// coded returns a random matrix, packets, and what it makes of them.
func coded(f field.Field, rng *rand.Rand, rows, columns, n int) (a [][]field.Element, x, y [][]byte) {
	a = make([][]field.Element, rows)
	for i := range a {
		x = append(x, symbols(f, rng, n))
		for range columns {
			a[i] = append(a[i], element(f, rng))
		}
	}
	for j := range columns {
		column := make([]field.Element, rows)
		for i := range column {
			column[i] = a[i][j]
		}
		y = append(y, make([]byte, n*f.SymbolBytes()))
		f.Combine(y[j], column, x)
	}
	return a, x, y
}

// TestRelation finds right results right, and each symbol of each result, changed alone, wrong and where it is. A
// thousand misses of probability 2^-32 do not happen.
func TestRelation(t *testing.T) {
	for _, name := range append([]string{"3"}, fingerprintFields...) {
		f := fieldtest.Parse(t, name)
		size := f.SymbolBytes()
		rng := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{0, 1, 63, 700, 5000} {
			a, x, y := coded(f, rng, 3, 5, n)
			r := relation(f, verify.Seed{byte(n)}, a)
			if at := r.Wrong(x, y); at != -1 {
				t.Fatalf("%s, %d symbols: right results are wrong at %d", name, n, at)
			}
			for range min(n, 60) {
				j, at := rng.IntN(len(y)), rng.IntN(n)*size
				was := bytes.Clone(y[j][at:][:size])
				field.PutSymbol(f, y[j][at:], f.Add(field.Symbol(f, was), field.One))
				if got := r.Wrong(x, y); got != at {
					t.Fatalf("%s, %d symbols: result %d is wrong at byte %d, got %d", name, n, j, at, got)
				}
				copy(y[j][at:], was)
			}
		}
	}
}

// TestRelationSums has the least number of sums with which wrong results pass with a probability of 2^-32 at most.
func TestRelationSums(t *testing.T) {
	for _, name := range append([]string{"3", "2^5", "2^12", "65521", "goldilocks", "bls12-381"}, fingerprintFields...) {
		f := fieldtest.Parse(t, name)
		q, _ := f.Order().Float64()
		if e := verify.RelationBytes(f) / f.SymbolBytes(); float64(e)*math.Log2(q) < 32 || float64(e-1)*math.Log2(q) >= 32 {
			t.Errorf("%s: %d sums", name, e)
		}
	}
}

// TestRelationPasses takes all weights over tiny fields, in one sum, and every difference of two results at a symbol that
// is not zero: each passes with exactly one in q of the weights. With several sums it is one in q for each.
func TestRelationPasses(t *testing.T) {
	for _, name := range []string{"2", "3", "2^2", "5", "2^3"} {
		f := fieldtest.Parse(t, name)
		q := int(f.Order().Int64())
		n := f.SymbolBytes()
		e := verify.RelationBytes(f) / n
		a := [][]field.Element{{field.One, field.Code(uint64(q - 1))}, {field.Code(uint64(q - 1)), field.One}}
		passed := map[[2]int]int{}
		for w := range q * q {
			// The same weights in all sums are one sum.
			weights, products := make([][]byte, 2), make([][]byte, 2)
			at := []field.Element{field.Code(uint64(w % q)), field.Code(uint64(w / q))}
			for j := range 2 {
				p := f.Add(f.Mul(at[0], a[j][0]), f.Mul(at[1], a[j][1]))
				for range e {
					weights[j], products[j] = append(weights[j], make([]byte, n)...), append(products[j], make([]byte, n)...)
					field.PutSymbol(f, weights[j][len(weights[j])-n:], at[j])
					field.PutSymbol(f, products[j][len(products[j])-n:], p)
				}
			}
			r := verify.NewRelation(f, products, weights)
			for d := 1; d < q*q; d++ {
				y := [][]byte{make([]byte, n), make([]byte, n)} // of packets of zeros: what they differ by
				field.PutSymbol(f, y[0], field.Code(uint64(d%q)))
				field.PutSymbol(f, y[1], field.Code(uint64(d/q)))
				if r.Wrong([][]byte{make([]byte, n), make([]byte, n)}, y) < 0 {
					passed[[2]int{d % q, d / q}]++
				}
			}
		}
		for d, count := range passed {
			if count != q {
				t.Errorf("%s: the difference %v passes with %d of %d weights, want %d", name, d, count, q*q, q)
			}
		}
		if len(passed) != q*q-1 {
			t.Errorf("%s: %d differences pass with some weights, want all %d", name, len(passed), q*q-1)
		}
	}
}

// TestRelationWeights has weights that a seed always gives, each of q values as often as the others.
func TestRelationWeights(t *testing.T) {
	for _, name := range []string{"2", "3", "97", "257"} {
		f := fieldtest.Parse(t, name)
		list := symbolsOf(f, verify.RelationWeights(f, verify.Seed{5}, 20*int(f.Order().Int64())))
		if !slices.Equal(list, symbolsOf(f, verify.RelationWeights(f, verify.Seed{5}, 20*int(f.Order().Int64())))) {
			t.Errorf("%s: other weights by the same seed", name)
		}
		count := make([]float64, f.Order().Int64())
		for _, w := range list {
			count[w[0]]++
		}
		checkUniform(t, name, count)
	}
}
