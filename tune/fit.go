package tune

import (
	"cmp"
	"math"
	"slices"
	"time"

	"volley/sim"
)

// G is kept by messages under way where that of the most messages is steeper times G(1), and
// the difference makes rounds longer by a part of their time that is no error of measuring.
const (
	steeper = 1.2
	shows   = 0.1
)

// fit returns the network L + o·n + G·bytes that is nearest to the points, the last of which is that of the most bytes
// in the most messages, by weighted medians of slopes: H. Theil, "A rank-invariant method of linear and polynomial
// regression analysis", 1950; P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", 1968. A few
// points that are off do not move a median. The error of a time is taken to be in proportion to it, so a slope weighs
// as much as it is known. First comes G, from points of as many messages, then o, from what G leaves, then L.
func fit(points []Point) sim.Network {
	byteSlopes := func(messages int) float64 { // 0 is any number
		var list slopes
		for i, p := range points {
			for _, q := range points[:i] {
				if p.Messages == q.Messages && (messages == 0 || p.Messages == messages) {
					list.add(float64(p.Bytes-q.Bytes), p.Seconds-q.Seconds, p, q)
				}
			}
		}
		return list.median()
	}
	var n sim.Network
	n.Gaps[0] = sim.Gap{Messages: 1, PerByte: sim.PerByte(rounded(byteSlopes(0)))}
	var numbers []int
	for _, p := range points {
		numbers = append(numbers, p.Messages)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	largest := points[len(points)-1]
	first, last := byteSlopes(1), byteSlopes(largest.Messages)
	if last > steeper*first && (last-first)*float64(largest.Bytes) > shows*largest.Seconds {
		for i, messages := range numbers {
			n.Gaps[i] = sim.Gap{Messages: int32(messages), PerByte: sim.PerByte(rounded(byteSlopes(messages)))}
		}
	}
	remainder := func(p Point) float64 { return p.Seconds - float64(n.Gap(p.Messages))*float64(p.Bytes) }
	var overhead, latency slopes
	for i, p := range points {
		for _, q := range points[:i] {
			overhead.add(float64(p.Messages-q.Messages), remainder(p)-remainder(q), p, q)
		}
	}
	n.Overhead = duration(overhead.median())
	for _, p := range points {
		latency.add(1, remainder(p)-n.Overhead.Seconds()*float64(p.Messages), p, p)
	}
	n.Latency = duration(latency.median())
	return n
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// slopes are dy/dx of pairs of points, each with its weight.
type slopes []struct{ slope, weight float64 }

// add adds a slope whose points have errors in proportion to their times.
func (s *slopes) add(dx, dy float64, p, q Point) {
	if dx != 0 {
		uncertainty := max(math.Hypot(p.Seconds, q.Seconds), resolution)
		*s = append(*s, struct{ slope, weight float64 }{dy / dx, math.Abs(dx) / uncertainty})
	}
}

// resolution is about that of a clock, in seconds.
const resolution = 1e-9

// median returns the slope with half of the weight on either side; none is below 0.
func (s slopes) median() float64 {
	slices.SortFunc(s, func(a, b struct{ slope, weight float64 }) int { return cmp.Compare(a.slope, b.slope) })
	half := 0.0
	for _, x := range s {
		half += x.weight / 2
	}
	for _, x := range s {
		if half -= x.weight; half <= 0 {
			return max(0, x.slope)
		}
	}
	return 0
}

// Model returns the time of a round by the fit, in seconds.
func (r *Result) Model(p Point) float64 {
	return r.Network.Round(p.Messages, float64(p.Bytes)) / float64(time.Second)
}

// Residual returns the root mean square of what the fit is off, relative to each point.
func (r *Result) Residual() float64 {
	sum := 0.0
	for _, p := range r.Points {
		deviation := r.Model(p)/max(p.Seconds, resolution) - 1
		sum += deviation * deviation
	}
	return math.Sqrt(sum / float64(max(1, len(r.Points))))
}
