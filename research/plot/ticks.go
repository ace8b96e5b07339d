package plot

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// An axis has no more labels than this; of powers of two, which are short, a few more.
const (
	mostLabels = 9
	mostPowers = 12
)

// ticker returns what puts ticks on the axis.
func ticker(a Axis) plot.Ticker {
	format := a.Format
	if format == nil {
		format = number
	}
	return plot.TickerFunc(func(low, high float64) []plot.Tick {
		major, minor := linear(low, high)
		switch {
		case a.Log && high/low < 4:
			minor = nil
		case a.Log && a.Binary:
			major, minor = powers(low, high, 2, mostPowers)
		case a.Log:
			major, minor = decades(low, high)
		}
		var ticks []plot.Tick
		for _, v := range major {
			ticks = append(ticks, plot.Tick{Value: v, Label: format(v)})
		}
		for _, v := range minor {
			ticks = append(ticks, plot.Tick{Value: v})
		}
		return ticks
	})
}

// within keeps the values of an axis, with some allowance for rounding.
func within(low, high float64, values []float64) []float64 {
	var list []float64
	slack := 1e-9 * (high - low)
	for _, v := range values {
		if v >= low-slack && v <= high+slack {
			list = append(list, v)
		}
	}
	return list
}

// linear returns multiples of 1, 2 or 5 times a power of ten.
func linear(low, high float64) (major, minor []float64) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/mostLabels)))
	for i := 0; (high-low)/step > mostLabels; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		major = append(major, i*step)
	}
	return major, nil
}

// powers returns powers of the base, so many at most as labels and those between them
// as minor ticks.
func powers(low, high, base, most float64) (major, minor []float64) {
	first := math.Ceil(math.Log(low)/math.Log(base) - 1e-9)
	last := math.Floor(math.Log(high)/math.Log(base) + 1e-9)
	every := max(1, math.Ceil((last-first+1)/most))
	for e := first; e <= last; e++ {
		v := math.Pow(base, e)
		if math.Mod(e, every) == 0 {
			major = append(major, v)
		} else {
			minor = append(minor, v)
		}
	}
	return within(low, high, major), within(low, high, minor)
}

// decades returns powers of ten, over few of them with their multiples by 2 and 5.
func decades(low, high float64) (major, minor []float64) {
	span := math.Log10(high / low)
	if span > 3 {
		major, minor = powers(low, high, 10, mostLabels)
		if span > mostLabels {
			return major, minor
		}
	}
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			switch {
			case span <= 3 && (m == 1 || m == 2 || m == 5):
				major = append(major, v)
			case m > 1:
				minor = append(minor, v)
			}
		}
	}
	return within(low, high, major), within(low, high, minor)
}

// number writes a number with commas between thousands.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if v != math.Trunc(v) {
		s = strconv.FormatFloat(v, 'g', 6, 64)
	}
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}
