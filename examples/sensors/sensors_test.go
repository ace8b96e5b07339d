package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"volley/field"
	"volley/matrix"
)

// TestTheory compares with numbers of matrices that can be counted by hand: of the 16 2×2
// matrices over 2 there are 6 of rank 2, of the 64 2×3 matrices 42.
func TestTheory(t *testing.T) {
	for _, test := range []struct {
		q, k, extra int
		want        float64
	}{{2, 1, 0, 1. / 2}, {2, 2, 0, 10. / 16}, {2, 2, 1, 22. / 64}, {256, 1, 2, math.Pow(256, -3)}} {
		if got := Theory(test.q, test.k, test.extra); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%+v: %v", test, got)
		}
	}
	// One sensor, two nodes, one of them read, one send: it is at the other in half of the cases.
	if got := BoundSparse(1, 1, 2, 1); got != 0.5 {
		t.Errorf("a sensor at one of two nodes: %v, want 0.5", got)
	}
}

// TestMeasure compares what is measured with theory. The trials are always the same ones.
func TestMeasure(t *testing.T) {
	const k, m, n, trials, z = 16, 18, 32, 5000, 3.5
	for _, name := range []string{"2", "3", "2^2", "2^4", "2^8"} {
		f, err := field.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		q := int(f.Order().Int64())
		for e, failed := range Measure(k, m, trials, 1, dense(f, k, m, n)) {
			theory := Theory(q, k, e)
			if low, high := Interval(failed, trials, z); theory < low || theory > high {
				t.Errorf("%s, K+%d: %d of %d failed, so [%.4f, %.4f]: theory says %.4f", name, e, failed, trials, low, high, theory)
			}
		}
	}

	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []int{2, 6, 10} {
		failed := Measure(k, m, trials, 1, sparse(f, k, m, n, d))[m-k]
		bound := BoundSparse(k, m, n, d)
		if _, high := Interval(failed, trials, z); high < bound {
			t.Errorf("d = %d: %d of %d failed, the bound is %.4f", d, failed, trials, bound)
		}
		if low, _ := Interval(failed, trials, z); d == 10 && low > 2*bound {
			t.Errorf("d = %d: %d of %d failed, more than twice the bound of %.4f", d, failed, trials, bound)
		}
	}
}

// TestMeasureColumns has columns in the span of those before.
func TestMeasureColumns(t *testing.T) {
	f, err := field.Parse("7")
	if err != nil {
		t.Fatal(err)
	}
	columns := [][]uint64{{1, 2, 3}, {2, 4, 6}, {0, 1, 1}, {1, 3, 4}, {0, 0, 5}, {1, 1, 1}}
	got := Measure(3, len(columns), 2, 1, func(*rand.Rand) *matrix.Dense {
		return matrix.DenseFunc(f, 3, len(columns), func(i, j int) field.Element { return field.Code(columns[j][i]) })
	})
	if want := []int{2, 2, 0, 0}; !slices.Equal(got, want) { // the fifth makes the rank 3
		t.Errorf("failures %v, want %v", got, want)
	}
}

// TestCollect reads too few packets, and then enough.
func TestCollect(t *testing.T) {
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDeployment(f, 5, 9, 3)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	readings := make([][]byte, d.Sensors)
	for i := range readings {
		readings[i] = day(rng)
	}
	stored, _, err := d.Store(t.Context(), readings)
	if err != nil {
		t.Fatal(err)
	}
	read := map[int][]byte{0: stored[0], 3: stored[3], 6: stored[6], 8: stored[8]}
	if _, err := d.Collect(t.Context(), read); err == nil || !strings.Contains(err.Error(), "no more than 4 of them") {
		t.Errorf("four packets of five: %v", err)
	}
	read[1], read[2], read[4] = stored[1], stored[2], stored[4]
	back, err := d.Collect(t.Context(), read)
	if err != nil {
		t.Fatal(err)
	}
	for i := range readings {
		if !bytes.Equal(back[i], readings[i]) {
			t.Errorf("the readings of sensor %d are wrong", i)
		}
	}
}

// TestPage compares the output with that in README.md.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := demonstrate(t.Context(), &out, 1, 5000); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, fmt.Appendf(nil, "```text\n%s```\n", out.String())) {
		t.Errorf("README.md has another output than this:\n%s", out.String())
	}
}
