package tune

import "math"

// resolution is about that of a clock, in seconds: what is shorter is not known
// any better than to that.
const resolution = 1e-9

// fit sets β and τ to the least squares of what they are off the points, relative
// to each point: a message of a byte counts like one of a megabyte. Neither is
// below 0.
func (r *Result) fit() {
	var sum, x, t, xx, xt float64 // Σw, Σwx, …
	for _, p := range r.Points {
		w := weight(p)
		sum += w
		x += w * float64(p.Bytes)
		t += w * p.Seconds
	}
	if sum == 0 {
		return
	}
	meanX, meanT := x/sum, t/sum
	for _, p := range r.Points {
		w, dx, dt := weight(p), float64(p.Bytes)-meanX, p.Seconds-meanT
		xx += w * dx * dx
		xt += w * dx * dt
	}
	tau := 0.0
	if xx > 0 {
		tau = max(0, xt/xx)
	}
	beta := meanT - tau*meanX
	if beta < 0 { // the line through 0
		beta, xx, xt = 0, 0, 0
		for _, p := range r.Points {
			w, x := weight(p), float64(p.Bytes)
			xx += w * x * x
			xt += w * x * p.Seconds
		}
		tau = xt / xx
	}
	var off, all float64
	for _, p := range r.Points {
		d, dt := p.Seconds-beta-tau*float64(p.Bytes), p.Seconds-meanT
		off += weight(p) * d * d
		all += weight(p) * dt * dt
	}
	r.BetaSeconds, r.TauSecondsPerByte = beta, tau
	r.Residual = math.Sqrt(off / float64(len(r.Points)))
	r.RSquared = 1
	if off > 0 && all > 0 {
		r.RSquared = max(0, 1-off/all)
	}
}

func weight(p Point) float64 {
	t := max(p.Seconds, resolution)
	return 1 / (t * t)
}

// Model returns the time of a round with messages of that many bytes, in seconds,
// as the fit has it.
func (r *Result) Model(bytes int) float64 { return r.BetaSeconds + float64(bytes)*r.TauSecondsPerByte }
