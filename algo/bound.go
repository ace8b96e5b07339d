package algo

import (
	"volley/algo/internal/universal"
	"volley/algo/schedule"
)

// BoundC1 is the least number of rounds of a plan for a matrix with a row
// without zeros: ⌈log_{p+1} K⌉, as a packet reaches at most (p+1)^t processors in
// t rounds (paper, section "Lower Bounds", first lemma).
func BoundC1(k, ports int) int { return schedule.Clog(k, ports) }

// BoundC2 is the least C2 of a schedule that can compute every matrix: the least
// T with p²T² - p(p-2)T + 2(1-K) >= 0, from counting codings (paper, section
// "Lower Bounds", second lemma). The count is exact for fields that are large
// against K; for tiny fields the true bound may be lower.
func BoundC2(k, ports int) int {
	t := 0
	for ports*ports*t*t-ports*(ports-2)*t+2*(1-k) < 0 {
		t++
	}
	return t
}

// BoundMinCut is the least C2 of a schedule for every matrix that has the least
// C1, for K = (p+1)^T: Σ_t min((p+1)^(t-1), (p+1)^(T-t)) for t = 1 … T. The first
// term bounds what a processor can know when round t begins, the second how many
// results it can still reach. ok is false for other K.
func BoundMinCut(k, ports int) (c2 int, ok bool) {
	after := 1
	for after < k {
		after *= ports + 1
	}
	if after != k {
		return 0, false
	}
	for before := 1; after > 1; before *= ports + 1 {
		after /= ports + 1
		c2 += min(before, after)
	}
	return c2, true
}

// UniversalC2 is the C2 of the universal algorithm in at most so many rounds, which a new
// algorithm has to beat.
func UniversalC2(processors, ports, rounds int) int { return universal.C2(processors, ports, rounds) }
