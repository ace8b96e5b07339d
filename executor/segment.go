package executor

import (
	"fmt"

	"volley/plan"
)

// SegmentBytes returns the longest segment for packets of the given bytes such
// that what a processor of p holds at a time, slots as [plan.MemorySlots] counts
// them, fits in memory bytes. It is a
// multiple of align, the unit in which packets may be cut, and no longer than
// the packet takes. It returns a *[MemoryError] when there is none.
func SegmentBytes(p plan.Plan, slotCount int, bytes, memory, align int64) (int64, error) {
	pieces := int64(p.Info().PieceCount())
	slots := int64(max(1, slotCount))
	each, whole := memory/slots, (bytes+pieces-1)/pieces // of a piece
	if each >= whole {
		return pieces * max(align, (whole+align-1)/align*align), nil
	}
	if each < align {
		return 0, &MemoryError{p.Info().Algorithm, memory, (slots + pieces - 1) / pieces, slots * min(align, whole)}
	}
	return pieces * (each / align * align), nil
}

// A MemoryError says that a bound on memory is too low for an algorithm.
type MemoryError struct {
	Algorithm string
	Memory    int64 // bytes of the bound
	Packets   int64 // that a processor holds at a time
	Least     int64 // bytes that would do
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("executor: %d bytes of memory: %s holds up to %d packets at a time and needs at least %d bytes",
		e.Memory, e.Algorithm, e.Packets, e.Least)
}
