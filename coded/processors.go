package coded

import (
	"fmt"
	"slices"

	"volley"
	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/matrix"
)

// An inventory says which packets the ranks have.
type inventory struct {
	ranks  int
	inputs []int // by input: the rank that has it, -1 where it is lost
	coded  []int // by coded packet: the same
}

// A processor is a processor of the decoding: it has one packet and obtains one input.
type processor struct {
	input  int // that it has; -1: it has a coded packet
	coded  int // that it has; -1: it has an input
	holder int // rank that has the packet and, unless it is the processor's, sends it there
	result int // input that it obtains; its own, where it has one
	row    int // of its packet among those kept and then those chosen
}

// newInventory says that the ranks have nothing of k inputs and r coded packets.
func newInventory(ranks, k, r int) *inventory {
	return &inventory{ranks, slices.Repeat([]int{-1}, k), slices.Repeat([]int{-1}, r)}
}

// note says that a rank has packet n of a list. Of several ranks the one counts that has the processor of that number.
func (h *inventory) note(list []int, n, rank int) {
	if first, end := h.hosted(rank); list[n] < 0 || first <= n && n < end {
		list[n] = rank
	}
}

func (h *inventory) split() (kept, lost []int) {
	for k, rank := range h.inputs {
		if rank < 0 {
			lost = append(lost, k)
		} else {
			kept = append(kept, k)
		}
	}
	return kept, lost
}

func (h *inventory) hosted(rank int) (first, end int) {
	return executor.Hosted(len(h.inputs), rank, h.ranks)
}

// preferred returns the coded packets at hand, first those of ranks with fewer inputs than processors: they can stay.
func (h *inventory) preferred() []int {
	room := make([]int, h.ranks)
	for rank := range room {
		first, end := h.hosted(rank)
		room[rank] = end - first
	}
	for _, rank := range h.inputs {
		if rank >= 0 {
			room[rank]--
		}
	}
	var kept, far []int
	for c, rank := range h.coded {
		switch {
		case rank < 0:
		case room[rank] > 0:
			room[rank]--
			kept = append(kept, c)
		default:
			far = append(far, c)
		}
	}
	return append(kept, far...)
}

// assign deals inputs at hand and chosen coded packets out to processors, if possible at their ranks and results.
func (h *inventory) assign(chosen []int) []processor {
	procs := slices.Repeat([]processor{{-1, -1, -1, -1, -1}}, len(h.inputs))
	put := func(p int, s processor) bool {
		if procs[p].holder >= 0 {
			return false
		}
		procs[p] = s
		return true
	}
	var packets []processor
	kept, lost := h.split()
	for i, k := range kept {
		s := processor{k, -1, h.inputs[k], k, i}
		if first, end := h.hosted(s.holder); k < first || k >= end || !put(k, s) {
			packets = append(packets, s)
		}
	}
	for i, c := range chosen {
		packets = append(packets, processor{-1, c, h.coded[c], -1, len(kept) + i})
	}
	packets = slices.DeleteFunc(packets, func(s processor) bool {
		for p, end := h.hosted(s.holder); p < end; p++ {
			if put(p, s) {
				return true
			}
		}
		return false
	})
	for p := range procs {
		if len(packets) > 0 && put(p, packets[0]) {
			packets = packets[1:]
		}
	}
	lost = slices.DeleteFunc(lost, func(k int) bool {
		if procs[k].coded < 0 {
			return false
		}
		procs[k].result = k
		return true
	})
	for p := range procs {
		if procs[p].result < 0 {
			procs[p].result, lost = lost[0], lost[1:]
		}
	}
	return procs
}

// newDecoder returns what encodes the packets of processors to their results, at each its own. By says how lost inputs
// come of those kept and of coded packets chosen, as solver.Solve does.
func (r *run) newDecoder(f field.Field, procs []processor, decoding matrix.Matrix, options []volley.Option) (*volley.Encoder, error) {
	options = append(slices.Clip(options), volley.WithOrder(algo.Natural))
	var lost []int
	ordered := true // all are lost
	for p, s := range procs {
		if s.coded >= 0 {
			lost = append(lost, s.result)
		}
		ordered = ordered && s.coded >= 0 && s.row == p && s.result == p
	}
	if ordered {
		return r.newEncoder(decoding, options...)
	}
	err := matrix.CheckDense(f, len(procs), len(procs))
	if err == nil {
		err = matrix.StructureOf(decoding).Ready(r.ctx)
	}
	if err != nil {
		return nil, r.input(fmt.Errorf("cannot decode: %w", err))
	}
	slices.Sort(lost)
	d := matrix.NewDense(f, len(procs), len(procs))
	for p, s := range procs {
		if s.coded < 0 {
			d.Set(p, p, field.One)
			continue
		}
		column, _ := slices.BinarySearch(lost, s.result)
		for q, s := range procs {
			d.Set(q, p, decoding.At(s.row, column))
		}
	}
	return r.newEncoder(d, options...)
}
