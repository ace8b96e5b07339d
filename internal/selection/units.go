package selection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// ParseSize reads a number of bytes such as 64MiB.
func ParseSize(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > 1<<62 {
		return 0, fmt.Errorf("want a size such as 64MiB")
	}
	return int64(n), nil
}

// longest is more than any network takes for anything.
const longest = time.Hour

// ParseDuration reads a flag's duration in seconds, which may be a fraction of a nanosecond, or returns an *Error.
func ParseDuration(flag, s string) (float64, error) {
	const digits = "0123456789."
	unit := strings.TrimLeft(s, digits)
	number, err := strconv.ParseFloat(strings.TrimSuffix(s, unit), 64)
	if err == nil && number == 0 && unit == "" {
		return 0, nil
	}
	d, unitErr := time.ParseDuration("1" + unit)
	seconds := number * d.Seconds()
	if err != nil || unitErr != nil || strings.ContainsAny(unit, digits) || seconds > longest.Seconds() {
		return 0, Markf(flag, "--%s %q: want a number and its unit, such as 20us or 0.8ns, from 0 to %v", flag, s, longest)
	}
	return seconds, nil
}

// The most values of a list of numbers, and the largest K.
const (
	MostNumbers = 1 << 16
	LargestK    = 1 << 20
)

// ParseNumbers reads numbers from least to largest and ranges a..b, separated by commas.
func ParseNumbers(s string, least, largest int) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "..")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < least || b < a || b > largest {
			return nil, fmt.Errorf("%q: want a number or a range a..b from %d to %d", part, least, largest)
		}
		if len(list)+b-a >= MostNumbers {
			return nil, fmt.Errorf("more than %d values", MostNumbers)
		}
		for k := a; k <= b; k++ {
			list = append(list, k)
		}
	}
	return list, nil
}

// AlgorithmNames returns those of a list with commas, each once. Parameters have commas too: exchange:8,8.
func AlgorithmNames(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if last := len(names) - 1; last >= 0 && strings.IndexAny(strings.TrimSpace(name), "0123456789") == 0 {
			names[last] += "," + strings.TrimSpace(name)
		} else {
			names = append(names, strings.TrimSpace(name))
		}
	}
	for i := len(names) - 1; i > 0; i-- {
		if slices.Contains(names[:i], names[i]) {
			names = slices.Delete(names, i, i+1)
		}
	}
	return names
}

// ParseProcessors reads numbers of processors and ranges a..b, separated by commas.
func ParseProcessors(s string) ([]int, error) { return ParseNumbers(s, 1, LargestK) }
