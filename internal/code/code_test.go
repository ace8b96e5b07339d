package code

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/matrix"
)

// TestSolve loses packets, none and all of them too, and sums what is left.
func TestSolve(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, name := range []string{"2^8", "257", "goldilocks"} {
		f := fieldtest.Parse(t, name)
		for _, size := range [][2]int{{1, 1}, {5, 3}, {6, 6}, {3, 7}} {
			k, r := size[0], size[1]
			a, err := matrix.Cauchy(f, k, r)
			if err != nil {
				t.Fatal(err)
			}
			x := make([]field.Element, k)
			for i := range x {
				x[i] = field.Code(uint64(rng.IntN(16)))
			}
			for missing := range min(k, r) + 1 {
				order, parity := rng.Perm(k), rng.Perm(r)
				kept, lost := order[missing:], order[:missing]
				parity = Independent(a, lost, parity)
				if len(parity) != missing {
					t.Fatalf("%s: %d of %d parity packets are a basis for %d", name, len(parity), r, missing)
				}
				d, err := Solve(a, kept, lost, parity)
				if err != nil {
					t.Fatal(err)
				}
				var left []field.Element
				for _, i := range kept {
					left = append(left, x[i])
				}
				for _, j := range parity {
					y := field.Element{}
					for i := range x {
						y = f.Add(y, f.Mul(x[i], a.At(i, j)))
					}
					left = append(left, y)
				}
				for n, l := range lost {
					sum := field.Element{}
					for i, y := range left {
						sum = f.Add(sum, f.Mul(y, d.At(i, n)))
					}
					if sum != x[l] {
						t.Errorf("%s, K=%d, R=%d, lost %v: packet %d is %v, want %v", name, k, r, lost, l, sum, x[l])
					}
				}
			}
		}
	}
}

// TestSingular has parity that is the same twice.
func TestSingular(t *testing.T) {
	t.Parallel()
	f := fieldtest.Parse(t, "2^8")
	a := matrix.DenseFunc(f, 2, 3, func(i, j int) field.Element { return field.Code(uint64(i*max(0, j-1) + 1)) })
	if _, err := Solve(a, nil, []int{0, 1}, []int{0, 1}); !errors.Is(err, matrix.ErrSingular) {
		t.Errorf("%v", err)
	}
	if got := Independent(a, []int{0, 1}, []int{0, 1, 2}); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("%v are independent", got)
	}
}
