package windows

import (
	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/sim"
)

// A pair is C1 and C2.
type pair struct{ C1, C2 int }

func pairOf(c sim.Cost) pair { return pair{c.C1, c.C2} }

// An askedMatrix counts how often it is asked for an entry.
type askedMatrix struct {
	matrix.Matrix
	asked *int
}

func (m askedMatrix) At(i, j int) field.Element {
	*m.asked++
	return m.Matrix.At(i, j)
}

// universalC2 is the C2 of the tuned universal step in so many rounds above the fewest, any number if that is negative.
func universalC2(k, ports, over int) int {
	tuned := tunedFront(k, ports)
	if over < 0 || over >= len(tuned) {
		over = len(tuned) - 1
	}
	return tuned[over]
}

// boundC2 is the least C2 of a schedule for every matrix, as package algo has it, from counting codings.
func boundC2(k, ports int) (c2 int) {
	for ports*ports*c2*c2-ports*(ports-2)*c2+2*(1-k) < 0 {
		c2++
	}
	return c2
}
