package algo

import (
	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/plan"
)

// Bounds returns C1 and C2, in elements, that no schedule for every matrix of the shape of a plan
// goes below: those of [BoundC1] and [BoundC2] where every processor is source and sink. Of
// others it is known that a sink hears of K sources and a source is heard of by R sinks. Where
// packets are cut, it is known that one has to come in on p ports.
func Bounds(i plan.Info) (c1, c2 int) {
	pieces := i.PieceCount()
	k, r := i.Rows/pieces, i.Columns/pieces
	c1, c2 = bounds(k, r, i.Processors >= k+r, i.Ports)
	if pieces > 1 {
		c2 = schedule.Ceil(pieces, i.Ports)
	}
	return c1, c2
}

func bounds(k, r int, separate bool, ports int) (c1, c2 int) {
	if k == r && !separate {
		return BoundC1(k, ports), BoundC2(k, ports)
	}
	if separate { // a sink is none of the sources
		k, r = k+1, r+1
	}
	return BoundC1(max(k, r), ports), 1
}

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
