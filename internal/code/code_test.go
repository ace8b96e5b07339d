package code

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/matrix"
)

// independent returns the first of parity whose columns are a basis in the rows of lost packets, by the definition: each
// packet that is no sum of those before.
func independent(a matrix.Matrix, lost, parity []int) (chosen []int) {
	f := a.Field()
	var basis [][]field.Element // each is one at its lead, and the others are zero there
	var leads []int
	for _, j := range parity {
		x := make([]field.Element, len(lost))
		for i, l := range lost {
			x[i] = a.At(l, j)
		}
		subtract := func(from, y []field.Element, lead int) {
			c := from[lead]
			for i := range from {
				from[i] = f.Sub(from[i], f.Mul(c, y[i]))
			}
		}
		for b, y := range basis {
			subtract(x, y, leads[b])
		}
		lead := slices.IndexFunc(x, func(e field.Element) bool { return !e.IsZero() })
		if lead < 0 {
			continue
		}
		by := f.Inv(x[lead])
		for i := range x {
			x[i] = f.Mul(by, x[i])
		}
		for _, y := range basis {
			subtract(y, x, lead)
		}
		basis, leads, chosen = append(basis, x), append(leads, lead), append(chosen, j)
	}
	return chosen
}

// checkSolve loses packets, and compares what is used with the first that are independent, and the sums with what was
// lost.
func checkSolve(t *testing.T, rng *rand.Rand, a matrix.Matrix, kept, lost, parity []int) (matrix.Matrix, []int) {
	t.Helper()
	f, before := a.Field(), slices.Clone(parity)
	used, d, err := Solve(t.Context(), a, kept, lost, parity)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(parity, before) {
		t.Errorf("the parity %v has become %v", before, parity)
	}
	want := independent(a, lost, parity)
	if len(lost) == a.Rows() && len(lost) == a.Cols() { // then the order is that of the inverse
		slices.Sort(want)
	}
	if len(want) < len(lost) {
		want, used = independent(a, lost, parity), slices.Clone(used)
		if d != nil {
			t.Errorf("%s: %v do not tell %v: there are sums", f.Name(), parity, lost)
		}
	}
	if !slices.Equal(used, want) {
		t.Fatalf("%s: of %v it uses %v for %v, want %v", f.Name(), parity, used, lost, want)
	}
	if len(used) < len(lost) {
		return nil, used
	}
	if d.Rows() != len(kept)+len(used) || d.Cols() != len(lost) {
		t.Fatalf("%s: a matrix of %d×%d for %d kept, %d used and %d lost", f.Name(), d.Rows(), d.Cols(), len(kept), len(used), len(lost))
	}
	x := make([]field.Element, a.Rows())
	for i := range x {
		x[i] = field.Code(uint64(rng.IntN(16)))
	}
	var left []field.Element
	for _, i := range kept {
		left = append(left, x[i])
	}
	for _, j := range used {
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
			t.Errorf("%s, %d×%d, lost %v: packet %d is %v, want %v", f.Name(), a.Rows(), a.Cols(), lost, l, sum, x[l])
		}
	}
	return d, used
}

var fields = []string{"2^8", "2^16", "257", "65537", "goldilocks"}

// TestSolve loses packets, none, all and more than the parity tells too.
func TestSolve(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, name := range fields {
		f := fieldtest.Parse(t, name)
		for _, size := range [][2]int{{1, 1}, {5, 3}, {6, 6}, {3, 7}, {40, 40}} {
			k, r := size[0], size[1]
			a, err := matrix.Cauchy(f, k, r)
			if err != nil {
				t.Fatal(err)
			}
			for missing := range min(k, r+1) + 1 {
				order, parity := rng.Perm(k), rng.Perm(r)
				kept, lost := order[missing:], order[:missing]
				slices.Sort(lost)
				if _, used := checkSolve(t, rng, a, kept, lost, parity); len(used) != min(missing, r) {
					t.Errorf("%s: %d of %d parity packets are used for %d", name, len(used), r, missing)
				}
				if missing > 0 {
					checkSolve(t, rng, a, kept, lost, parity[:missing-1])
				}
			}
		}
	}
}

// TestDependent has matrices of few different rows and columns, of which many are sums of others.
func TestDependent(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 1))
	for _, name := range fields {
		f := fieldtest.Parse(t, name)
		enough, few := 0, 0
		for range 200 {
			k, r, rank := 1+rng.IntN(8), 1+rng.IntN(12), 1+rng.IntN(6)
			left := matrix.DenseFunc(f, k, rank, func(_, _ int) field.Element { return field.Code(uint64(rng.IntN(3))) })
			right := matrix.DenseFunc(f, rank, r, func(_, _ int) field.Element { return field.Code(uint64(rng.IntN(2))) })
			a, err := matrix.Mul(left, right)
			if err != nil {
				t.Fatal(err)
			}
			order, missing := rng.Perm(k), 1+rng.IntN(k)
			lost := order[:missing]
			slices.Sort(lost)
			if d, _ := checkSolve(t, rng, a, order[missing:], lost, rng.Perm(r)[:1+rng.IntN(r)]); d != nil {
				enough++
			} else {
				few++
			}
		}
		if enough < 20 || few < 20 {
			t.Errorf("%s: %d matrices tell what is lost, and %d do not", name, enough, few)
		}
	}
}

// TestAllLost brings all back by the inverse, with its structure.
func TestAllLost(t *testing.T) {
	t.Parallel()
	f := fieldtest.Parse(t, "257")
	points, err := matrix.CosetPoints(f, 16)
	if err != nil {
		t.Fatal(err)
	}
	all := rand.New(rand.NewPCG(3, 1)).Perm(16)
	used, d, err := Solve(t.Context(), matrix.Vandermonde(points, 0), nil, slices.Sorted(slices.Values(all)), all)
	if err != nil || !slices.IsSorted(used) || len(used) != 16 {
		t.Fatalf("%v, %v", used, err)
	}
	if fact, err := matrix.Factor(t.Context(), d, nil); err != nil || fact == nil {
		t.Errorf("%v, %v: no inverse with layers", used, err)
	}
}

var errStopped = errors.New("stopped")

// A polled context ends when it is asked for the end-th time whether it has, never for 0.
type polled struct {
	context.Context
	cancel     context.CancelCauseFunc
	polls, end int
}

func newPolled(t *testing.T, end int) *polled {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return &polled{Context: ctx, cancel: cancel, end: end}
}

func (p *polled) Err() error {
	if p.polls++; p.polls == p.end {
		p.cancel(errStopped)
	}
	return p.Context.Err()
}

// TestStopped ends the context at every poll: of the entries, the elimination, the sums of those kept, and an inverse.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, name := range fields {
		f := fieldtest.Parse(t, name)
		for _, missing := range []int{12, 40} {
			a, err := matrix.Random(f, 40, 40, 1)
			if err != nil {
				t.Fatal(err)
			}
			all := make([]int, 40)
			for i := range all {
				all[i] = i
			}
			counting := newPolled(t, 0)
			if used, d, err := Solve(counting, a, all[missing:], all[:missing], all); err != nil || d == nil || len(used) != missing {
				t.Fatalf("%s: %v, %v", name, used, err)
			}
			// A step for each entry, for each row added to another, and for each sum of those kept.
			if steps := 40*missing + missing*missing + (40-missing)*missing; counting.polls < steps/100 {
				t.Errorf("%s: %d polls in %d steps", name, counting.polls, steps)
			}
			for end := 1; end <= counting.polls; end++ {
				if _, d, err := Solve(newPolled(t, end), a, all[missing:], all[:missing], all); err != errStopped || d != nil {
					t.Fatalf("%s: ended at poll %d of %d: %v, %v: want %v", name, end, counting.polls, d != nil, err, errStopped)
				}
			}
		}
	}
}
