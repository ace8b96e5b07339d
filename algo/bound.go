package algo

import (
	"slices"

	"volley/algo/schedule"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// A Bound is what no plan goes below: a number of rounds, and of elements for C2.
type Bound struct{ C1, C2 int }

// Bound returns what no plan for the matrix goes below that has so many ports, and of whose elements so many are a
// packet. After t rounds a packet, or a result, has to do with (p+1)^t processors at most (paper, section "Lower Bounds",
// first lemma); every round has a message of an element or more; and what has to move takes the C2 of [BoundCut], or that
// of one packet where the matrix has zeros, or entries that are not looked at.
func (p *Problem) Bound(ports, pieces int) Bound {
	s := p.support()
	packets, links := min(s.processors-1, 1), ports
	if s.dense {
		packets, links = leastTraffic(p.Matrix.Rows(), p.Matrix.Cols(), p.Separate, ports)
	}
	c1 := schedule.Clog(s.processors, ports)
	return Bound{c1, max(c1, schedule.Ceil(packets*pieces, links))}
}

// UniversalBound returns what no schedule goes below that serves every matrix of a plan's shape: in so many rounds, or in
// any number of rounds for 0. Where every processor is source and sink and packets are whole, its C2 is that of
// [universalC2]; else it is the [Problem.Bound] of a matrix without zeros.
func UniversalBound(i plan.Info, rounds int) Bound {
	pieces := i.PieceCount()
	k, r := i.Rows/pieces, i.Columns/pieces
	separate := i.Processors >= k+r
	packets, links := leastTraffic(k, r, separate, i.Ports)
	c1 := BoundC1(reached(k, r, separate), i.Ports)
	b := Bound{c1, max(c1, schedule.Ceil(packets*pieces, links))}
	if k == r && !separate && pieces == 1 {
		b.C2 = max(b.C2, universalC2(k, i.Ports, rounds))
	}
	return b
}

// BoundBeside returns the [UniversalBound] in as many rounds as a plan of such a cost takes. ok is false where the plan's
// algorithm has not one schedule for all matrices, as it is called or, below the bound, as it turns out.
func BoundBeside(i plan.Info, cost sim.Cost) (b Bound, ok bool) {
	if a, err := Lookup(i.Algorithm); err != nil || a.Structured {
		return b, false
	}
	b = UniversalBound(i, cost.C1)
	return b, cost.C1 >= b.C1 && cost.C2 >= b.C2
}

// reached returns how many processors have to do with a packet, or with a result, of a matrix without zeros.
func reached(k, r int, separate bool) int {
	if separate { // a sink is none of the sources
		return max(k, r) + 1
	}
	return max(k, r)
}

// A support is what is known of the entries whose row and column are of two processors.
type support struct {
	processors    int // that have to do with one packet, or one result, at most, by those that are looked at
	looked, zeros int
	dense         bool // all are known, and none is zero
}

// support returns the support of the matrix.
func (p *Problem) support() support {
	if p.known == nil {
		return p.findSupport()
	}
	return p.known.support.Get(p.findSupport)
}

func (p *Problem) findSupport() support {
	k, r := p.Matrix.Rows(), p.Matrix.Cols()
	if matrix.StructureOf(p.Matrix).Nonzero() {
		return support{processors: reached(k, r, p.Separate), dense: true}
	}
	var s support
	columns := min(r, max(1, mostPruned/k))
	told, partners := make([]int, k), 0
	for j := range columns {
		heard := 0
		for i := range k {
			if i == j && !p.Separate && p.Order == Natural {
				continue
			}
			if s.looked++; p.Matrix.At(i, j).IsZero() {
				s.zeros++
			} else {
				heard++
				told[i]++
			}
		}
		partners = max(partners, heard)
	}
	partners = max(partners, slices.Max(told))
	if p.Order == AnyOrder && !p.Separate && partners > 0 { // one of them may be the own
		partners--
	}
	s.processors, s.dense = partners+1, columns == r && s.zeros == 0
	return s
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

// BoundCut returns the least C2, in packets, of plans for the matrix that may cut packets, of one port where the planner
// chooses them: what a processor has to send, or to receive, on the links of the model. Dense says that it is that of the
// function [BoundCut], or of the links' rates: it is lower where the matrix has a zero in the column of a sink and the row
// of a source on another processor, and where its entries are too many to look at.
func (p *Problem) BoundCut(model sim.Model) (c2 float64, dense bool) {
	s, ports := p.support(), max(1, p.Ports)
	if rates := p.forModel(model).rates; rates != nil && s.dense && p.Square() {
		return schedule.BoundByRates(rates), true
	}
	if s.dense {
		return BoundCut(p.Matrix.Rows(), p.Matrix.Cols(), p.Separate, ports), true
	}
	return float64(min(s.processors-1, 1)) / float64(ports), false
}

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

// universalC2 returns the least C2 of a schedule for every matrix in so many rounds, or in any number for 0: by
// [fewestCodings], by [BoundMinCut], and 4 for K = 7 and p = 1 (docs/theory.md has the proofs).
func universalC2(k, ports, rounds int) int {
	c2 := BoundC2(k, ports)
	if k == 7 && ports == 1 {
		c2 = 4
	}
	if rounds > 0 {
		c2 = fewestCodings(k, ports, rounds, c2)
	}
	if cut, ok := BoundMinCut(k, ports); ok && rounds == BoundC1(k, ports) {
		c2 = max(c2, cut)
	}
	return c2
}

// fewestCodings returns the least C2, no less than a known bound, with which there may be enough codings in so many rounds,
// in a field that is large against K. A processor that knows N elements and sends d combinations of them on a port chooses
// one of as many subspaces as d·(N-d) parameters have; in the next round it knows p·d elements more.
func fewestCodings(k, ports, rounds, bound int) int {
	for limit := 2 * bound; ; limit *= 2 {
		parameters := make([]int, limit+1) // the most, by the elements sent in the rounds so far; -1: not possible
		for s := range parameters[1:] {
			parameters[s+1] = -1
		}
		for range rounds {
			next := slices.Clone(parameters)
			for s, chosen := range parameters {
				known := 1 + ports*s
				for d := 1; chosen >= 0 && d <= min(known, limit-s); d++ {
					next[s+d] = max(next[s+d], chosen+ports*d*(known-d))
				}
			}
			parameters = next
		}
		for c2 := bound; c2 <= limit; c2++ {
			if k <= 1+ports*c2+slices.Max(parameters[:c2+1]) {
				return c2
			}
		}
	}
}

// BoundMinCut is the least C2 of a schedule for every matrix that has the least C1, for K = (p+1)^T: Σ_t
// min((p+1)^(t-1), (p+1)^(T-t)) for t = 1 … T. The first term bounds what a processor can know when round t begins, the
// second how many results it can still reach. It holds for each matrix without a zero minor by itself (docs/theory.md).
// ok is false for other K.
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
