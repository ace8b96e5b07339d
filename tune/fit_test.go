package tune

import (
	"math"
	"math/rand/v2"
	"testing"
)

func points(beta, tau float64, noise func() float64) []Point {
	var list []Point
	for _, n := range sizes {
		list = append(list, Point{Bytes: n, Seconds: (beta + tau*float64(n)) * (1 + noise())})
	}
	return list
}

func near(got, want, relative float64) bool { return math.Abs(got-want) <= relative*want }

// TestFit checks that β and τ come back, of networks and memories of all kinds,
// from times that are off by up to some part of them.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, noise := range []float64{0, 0.01, 0.1} {
		for _, beta := range []float64{2e-7, 2e-5, 5e-2} {
			for _, tau := range []float64{2e-11, 8e-10, 1e-6} {
				if noise > 0 && tau*float64(1<<20) < 5*beta { // the times hardly tell τ
					continue
				}
				for range 20 {
					r := Result{Points: points(beta, tau, func() float64 { return noise * (2*rng.Float64() - 1) })}
					r.fit()
					if within := 1e-9 + 2*noise; !near(r.BetaSeconds, beta, within) || !near(r.TauSecondsPerByte, tau, within) {
						t.Errorf("β = %v, τ = %v, noise %v: fit %v, %v", beta, tau, noise, r.BetaSeconds, r.TauSecondsPerByte)
					}
					if r.Residual > noise+1e-9 || r.RSquared < 0.9 || r.RSquared > 1 {
						t.Errorf("β = %v, τ = %v, noise %v: residual %v, R² = %v", beta, tau, noise, r.Residual, r.RSquared)
					}
				}
			}
		}
	}
}

// TestFitOutlier checks that one point that is off, as one out of the cache is,
// shows in the residual.
func TestFitOutlier(t *testing.T) {
	r := Result{Points: points(1e-6, 1e-10, func() float64 { return 0 })}
	r.Points[len(r.Points)-1].Seconds *= 3
	r.fit()
	if !near(r.BetaSeconds, 1e-6, 0.2) || r.Residual < 0.05 || r.Residual > 0.5 || r.RSquared > 0.99 {
		t.Errorf("%+v", r)
	}
}

func TestFitExtremes(t *testing.T) {
	for _, c := range []struct {
		what      string
		points    []Point
		beta, tau float64
	}{
		{"no points", nil, 0, 0},
		{"one", []Point{{Bytes: 8, Seconds: 3}}, 3, 0},
		{"no time at all", []Point{{Bytes: 0}, {Bytes: 8}}, 0, 0},
		{"long ones are free", []Point{{Bytes: 0, Seconds: 2}, {Bytes: 8, Seconds: 2}}, 2, 0},
		{"long ones are quicker", []Point{{Bytes: 0, Seconds: 2}, {Bytes: 8, Seconds: 1}}, 1.2, 0},
		{"starting is free", []Point{{Bytes: 2, Seconds: 2}, {Bytes: 8, Seconds: 8}}, 0, 1},
		{"starting is better than free", []Point{{Bytes: 1, Seconds: 1}, {Bytes: 2, Seconds: 4}}, 0, 1.2},
	} {
		r := Result{Points: c.points}
		r.fit()
		if math.Abs(r.BetaSeconds-c.beta) > 1e-9 || math.Abs(r.TauSecondsPerByte-c.tau) > 1e-9 {
			t.Errorf("%s: β = %v, τ = %v, want %v and %v", c.what, r.BetaSeconds, r.TauSecondsPerByte, c.beta, c.tau)
		}
		for _, x := range []float64{r.Residual, r.RSquared} {
			if math.IsNaN(x) || x < 0 {
				t.Errorf("%s: residual %v, R² = %v", c.what, r.Residual, r.RSquared)
			}
		}
	}
}
