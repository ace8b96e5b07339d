package executor

import (
	"volley/field"
	"volley/plan"
)

// An operation is a combination made ready: slot dst becomes Σ coefs·sources.
type operation struct {
	dst     plan.Slot
	coefs   []field.Element
	sources []plan.Slot
}

func newOperation(dst plan.Slot, c plan.Combination) operation {
	op := operation{dst: dst}
	for _, term := range c {
		op.coefs = append(op.coefs, term.Coef)
		op.sources = append(op.sources, term.Slot)
	}
	return op
}

// compute runs the operations in order on n bytes of every packet, block by
// block.
func (m *machine) compute(ops []operation, n int) {
	for from := 0; from < n; from += blockBytes {
		to := min(n, from+blockBytes)
		for _, op := range ops {
			m.scratch = m.scratch[:0]
			for _, slot := range op.sources {
				m.scratch = append(m.scratch, m.slots[slot][from:to])
			}
			m.field.Combine(m.slots[op.dst][from:to], op.coefs, m.scratch)
		}
	}
}
