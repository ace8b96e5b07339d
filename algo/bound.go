package algo

import (
	"volley/algo/schedule"
	"volley/matrix"
	"volley/plan"
)

// Bounds returns C1 and C2, in elements, that no schedule for every matrix of the shape of a plan
// goes below: those of [BoundC1] and [BoundC2] where every processor is source and sink and
// packets are whole, else C2 is that of [BoundCut]. Of sources and sinks that differ it is known
// that a sink hears of K sources and a source is heard of by R sinks.
func Bounds(i plan.Info) (c1, c2 int) {
	pieces := i.PieceCount()
	k, r := i.Rows/pieces, i.Columns/pieces
	return bounds(k, r, i.Processors >= k+r, i.Ports, pieces)
}

func bounds(k, r int, separate bool, ports, pieces int) (c1, c2 int) {
	packets, links := leastTraffic(k, r, separate, ports)
	c2 = schedule.Ceil(packets*pieces, links)
	square := k == r && !separate
	if square && pieces == 1 {
		c2 = BoundC2(k, ports)
	}
	if separate { // a sink is none of the sources
		k, r = k+1, r+1
	}
	return BoundC1(max(k, r), ports), c2
}

// BoundCut returns the least C2, in packets, of a linear plan for a matrix without zeros off the
// diagonal, whatever pieces packets are cut into: K+R-2 packets have to move in all, and K+R-1
// where sinks are separate; each of the max(K, R) or K+R processors sends p at a time; and one
// packet has to come in on p ports. docs/theory.md has the proof (Theorem 1 and its corollary).
func BoundCut(k, r int, separate bool, ports int) float64 {
	packets, links := leastTraffic(k, r, separate, ports)
	return float64(packets) / float64(links)
}

// leastTraffic returns packets that have to move in all, and over how many links at a time.
func leastTraffic(k, r int, separate bool, ports int) (packets, links int) {
	processors := max(k, r)
	packets = k + r - 2
	if separate {
		processors, packets = k+r, k+r-1
	}
	if packets > 0 {
		packets = max(packets, processors)
	}
	return packets, processors * ports
}

// BoundCut returns what the function [BoundCut] does for the shape of the problem, of one port where the planner
// chooses them: what a processor has to send, or to receive. ok is false where the matrix has a zero in the column of a
// sink and the row of a source on another processor, and where its entries are too many to look at.
func (p *Problem) BoundCut() (c2 float64, ok bool) {
	k, r := p.Matrix.Rows(), p.Matrix.Cols()
	c2 = BoundCut(k, r, p.Separate, max(1, p.Ports)) // a network has one link
	if matrix.StructureOf(p.Matrix).Superregular() {
		return c2, true
	}
	if k*r > mostEntries {
		return 0, false
	}
	for i := range k {
		for j := range r {
			if (i != j || p.Separate) && p.Matrix.At(i, j).IsZero() {
				return 0, false
			}
		}
	}
	return c2, true
}

const mostEntries = 1 << 20

// BoundC1 is the least number of rounds for a matrix with a row without zeros: ⌈log_{p+1} K⌉ (paper, section "Lower Bounds",
// first lemma).
func BoundC1(k, ports int) int { return schedule.Clog(k, ports) }

// BoundC2 is the least C2 of a schedule that can compute every matrix: the least T with p²T² - p(p-2)T + 2(1-K) >= 0,
// from counting codings (paper, section "Lower Bounds", second lemma). The count is exact for fields that are large
// against K; for tiny fields the true bound may be lower.
func BoundC2(k, ports int) int {
	t := 0
	for ports*ports*t*t-ports*(ports-2)*t+2*(1-k) < 0 {
		t++
	}
	return t
}

// BoundMinCut is the least C2 of a schedule for every matrix that has the least C1, for K = (p+1)^T: Σ_t
// min((p+1)^(t-1), (p+1)^(T-t)) for t = 1 … T. The first term bounds what a processor can know when round t begins, the
// second how many results it can still reach. ok is false for other K.
func BoundMinCut(k, ports int) (c2 int, ok bool) {
	after := 1
	for after < k {
		after *= ports + 1
	}
	if after != k {
		return 0, false
	}
	for window := 1; after > 1; window *= ports + 1 {
		after /= ports + 1
		c2 += min(window, after)
	}
	return c2, true
}
