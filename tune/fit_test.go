package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"volley/sim"
)

// points returns the times of a network among k ranks, each off by up to the noise.
func points(k int, n sim.Network, noise func() float64) []Point {
	r := Result{Network: n}
	for _, total := range totals {
		for _, messages := range counts(k) {
			p := Point{Messages: messages, Bytes: max(1, total/messages) * messages}
			p.Seconds = r.Model(p) * (1 + noise())
			r.Points = append(r.Points, p)
		}
	}
	return r.Points
}

func exact() float64 { return 0 }

func network(latency, overhead time.Duration, gaps ...sim.Gap) sim.Network {
	n := sim.Network{Latency: latency, Overhead: overhead}
	copy(n.Gaps[:], gaps)
	return n
}

// farthest returns the most that a network's rounds take more or less than those of another, relative
// to these.
func farthest(got, want sim.Network, points []Point) float64 {
	most := 0.0
	g, w := Result{Network: got}, Result{Network: want}
	for _, p := range points {
		most = max(most, math.Abs(g.Model(p)/w.Model(p)-1))
	}
	return most
}

// networks are such as there are: in a process, a fabric, Ethernet, a wide area.
var networks = []sim.Network{
	network(2*time.Microsecond, 400*time.Nanosecond, sim.Gap{Messages: 1, PerByte: 4e-11}),
	network(20*time.Microsecond, 2*time.Microsecond, sim.Gap{Messages: 1, PerByte: 8.5e-10}),
	network(time.Millisecond, 20*time.Microsecond, sim.Gap{Messages: 1, PerByte: 8.5e-8}),
	network(30*time.Millisecond, 0, sim.Gap{Messages: 1, PerByte: 8.5e-9}),
}

// leastSquares fits L, o and one G by least squares of errors relative to the times: another
// way to find them, which outliers move.
func leastSquares(points []Point) sim.Network {
	var a [3][4]float64 // normal equations
	for _, p := range points {
		x := [4]float64{1, float64(p.Messages), float64(p.Bytes), p.Seconds}
		for i := range a {
			for j := range x {
				a[i][j] += x[i] * x[j] / (p.Seconds * p.Seconds)
			}
		}
	}
	for i := range a { // Gauss and Jordan; the matrix is positive definite
		for j := range a {
			if factor := a[j][i] / a[i][i]; i != j {
				for l := range a[j] {
					a[j][l] -= factor * a[i][l]
				}
			}
		}
	}
	return network(duration(a[0][3]/a[0][0]), duration(a[1][3]/a[1][1]), sim.Gap{Messages: 1, PerByte: sim.PerByte(a[2][3] / a[2][2])})
}

// TestFit checks that the network comes back: exactly from its times, as by least squares
// from times that are a little off, and where least squares fail, from times of which some are
// far off.
func TestFit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{2, 3, 4, 8, 16, 64, 1024} {
		for _, want := range networks {
			exactly := points(k, want, exact)
			for name, got := range map[string]sim.Network{"medians": fit(exactly), "least squares": leastSquares(exactly)} {
				if err := got.Validate(); err != nil || farthest(got, want, exactly) > 1e-3 {
					t.Errorf("K = %d, %v: %s: %v, %v", k, want, name, got, err)
				}
			}
			for range 20 {
				noisy := points(k, want, func() float64 { return 0.04 * (2*rng.Float64() - 1) })
				got, squares := fit(noisy), leastSquares(noisy)
				if farthest(got, want, exactly) > 0.08 || farthest(squares, want, exactly) > 0.08 {
					t.Errorf("K = %d, %v: %v, by least squares %v", k, want, got, squares)
				}
			}
			for _, times := range []float64{0.6, 5} {
				outliers := slices.Clone(exactly)
				outliers[rng.IntN(len(outliers)-len(counts(k)))].Seconds *= times // not the only one that tells G(n)
				if got := fit(outliers); farthest(got, want, exactly) > 0.05 {
					t.Errorf("K = %d, %v with an outlier: %v", k, want, got)
				}
				if times < 1 && farthest(leastSquares(outliers), want, exactly) < 0.05 {
					t.Errorf("K = %d, %v: an outlier does not move least squares", k, want)
				}
			}
		}
	}
}

// TestFitGaps checks that G is kept by messages under way where the link minds them, and only
// there.
func TestFitGaps(t *testing.T) {
	t.Parallel()
	for _, k := range []int{4, 8, 16, 64} {
		for _, times := range []float64{1, 1.1, 1.5, 4} {
			want := network(time.Millisecond, 10*time.Microsecond)
			numbers := counts(k)
			for i, n := range numbers {
				part := float64(i) / float64(len(numbers)-1)
				want.Gaps[i] = sim.Gap{Messages: int32(n), PerByte: sim.PerByte(1e-8 * (1 + part*(times-1)))}
			}
			list := points(k, want, exact)
			got := fit(list)
			if many := len(got.Gaps.Entries()) > 1; many != (times > steeper) {
				t.Errorf("K = %d, G(K−1) = %v·G(1): %v", k, times, got)
			}
			if within := 0.06; farthest(got, want, list) > within {
				t.Errorf("K = %d, G(K−1) = %v·G(1): %v is off by %v", k, times, got, farthest(got, want, list))
			}
		}
	}
}

func TestFitExtremes(t *testing.T) {
	t.Parallel()
	for what, list := range map[string][]Point{
		"one":                     {{Messages: 1, Bytes: 8, Seconds: 3}},
		"no time at all":          {{Messages: 1, Bytes: 1}, {Messages: 1, Bytes: 8}, {Messages: 3, Bytes: 3}},
		"long ones are quicker":   {{Messages: 1, Bytes: 1, Seconds: 2}, {Messages: 1, Bytes: 8, Seconds: 1}},
		"more messages are":       {{Messages: 1, Bytes: 1, Seconds: 2}, {Messages: 3, Bytes: 3, Seconds: 1}},
		"starting beats the free": {{Messages: 1, Bytes: 1, Seconds: 1}, {Messages: 1, Bytes: 2, Seconds: 4}},
	} {
		r := Result{Network: fit(list), Points: list}
		if err := r.Network.Validate(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if x := r.Residual(); math.IsNaN(x) || x < 0 {
			t.Errorf("%s: residual %v", what, x)
		}
	}
	r := Result{Network: networks[1], Points: []Point{{Messages: 1, Bytes: 1, Seconds: 11e-6}, {Messages: 3, Bytes: 3, Seconds: 52e-6}}}
	if x := fmt.Sprintf("%.4f", r.Residual()); x != "0.7906" { // off by 1 and −1/2
		t.Errorf("residual %s", x)
	}
}

func TestTypical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		samples []float64
		want    float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{9, 1, 8, 7, 2, 8}, 2},               // blocks of 2: 1, 7, 2
		{[]float64{9, 9, 3, 2, 9, 9, 9, 4, 9, 1}, 2.5}, // blocks of 3: 3, 2, 4, 1
	} {
		if got := typical(c.samples); got != c.want {
			t.Errorf("%v: %v, want %v", c.samples, got, c.want)
		}
	}
}
