package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Seconds writes a time in seconds in three digits, with its unit. Seconds and [Number] are for [Column].Text of float64s.
func Seconds(v any) string {
	seconds := v.(float64)
	if 0 < seconds && seconds < 1e-6 {
		return fmt.Sprintf("%.3gns", 1e9*seconds)
	}
	d := time.Duration(seconds * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// Number writes a number in three digits, and a whole one in as many as it has.
func Number(v any) string {
	switch x := v.(float64); {
	case x == math.Trunc(x) && math.Abs(x) < 1<<53:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case 100 <= x && x < 1e6:
		return fmt.Sprintf("%.0f", x)
	default:
		return fmt.Sprintf("%.3g", x)
	}
}
