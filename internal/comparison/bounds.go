package comparison

import (
	"fmt"

	"volley/algo"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/plan"
	"volley/sim"
)

// Bounds are the lower bounds that stand beside a plan.
type Bounds struct {
	BoundC1 int     `json:"bound_c1,omitempty"` // of plans for the matrix; none where the matrix is not known
	BoundC2 float64 `json:"bound_c2,omitempty"` // packets

	// Universal is the C2, in packets, of plans that have one schedule for every matrix, and as many rounds as this one. It
	// is nil beside others.
	Universal *float64 `json:"universal_c2,omitempty"`
}

// BoundsOf returns the bounds beside a plan of a cost; p is nil where it is not known which matrix the plan computes.
func BoundsOf(p *algo.Problem, i plan.Info, cost sim.Cost) (b Bounds) {
	inPackets := func(elements int) float64 { return sim.Cost{C2: elements, Pieces: i.PieceCount()}.PacketC2() }
	if p != nil {
		least := p.Bound(i.Ports, i.PieceCount())
		b.BoundC1, b.BoundC2 = least.C1, inPackets(least.C2)
	}
	if universal, ok := algo.BoundBeside(i, cost); ok {
		packets := inPackets(universal.C2)
		b.Universal = &packets
	}
	return b
}

// Text writes the bounds of C1 and of C2 beside a plan of so many rounds, in parentheses after a space.
func (b Bounds) Text(rounds int) (c1, c2 string) {
	universal := ""
	if b.Universal != nil {
		universal = fmt.Sprintf("; for every matrix in %s %s", printable.Count(rounds, "round"), report.Number(*b.Universal))
	}
	if b.BoundC2 > 0 {
		return fmt.Sprintf(" (bound %d)", b.BoundC1), fmt.Sprintf(" (bound %s%s)", report.Number(b.BoundC2), universal)
	}
	if universal != "" {
		return "", fmt.Sprintf(" (bound%s)", universal[1:])
	}
	return "", ""
}
