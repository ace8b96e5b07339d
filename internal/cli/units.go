package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"

	"volley/report"
)

// What people write for sizes, times and numbers, and how these are written for them.

// inBytes writes a size such as 64 KiB.
func inBytes(size float64) string {
	return strings.Replace(humanize.IBytes(uint64(math.Round(size))), ".0 ", " ", 1)
}

// inUnits writes a duration in seconds as short as it is exact to four digits.
func inUnits(seconds float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}} {
		if seconds >= u.size*(1-1e-9) || u.name == "ns" {
			return fmt.Sprintf("%.4g %s", seconds/u.size, u.name)
		}
	}
	return ""
}

// packetCount returns "1 packet", "2.5 packets".
func packetCount(n float64) string {
	if n == 1 {
		return "1 packet"
	}
	return report.Number(n) + " packets"
}
