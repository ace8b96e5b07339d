package coded

import (
	"slices"

	"volley/executor"
	"volley/field"
	solver "volley/internal/code"
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
	from   int // rank that has the packet and, unless it is the processor's, sends it there
	result int // input that it obtains; its own, where it has one
}

// newInventory says that the ranks have nothing of k inputs and r coded packets.
func newInventory(ranks, k, r int) *inventory {
	return &inventory{ranks, slices.Repeat([]int{-1}, k), slices.Repeat([]int{-1}, r)}
}

// has says that a rank has packet n of a list. Of several ranks the one counts that has the processor of that number.
func (h *inventory) has(list []int, n, rank int) {
	if first, end := h.hosted(rank); list[n] < 0 || first <= n && n < end {
		list[n] = rank
	}
}

func (h *inventory) lost() (lost []int) {
	for k, rank := range h.inputs {
		if rank < 0 {
			lost = append(lost, k)
		}
	}
	return lost
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
	var near, far []int
	for c, rank := range h.coded {
		switch {
		case rank < 0:
		case room[rank] > 0:
			room[rank]--
			near = append(near, c)
		default:
			far = append(far, c)
		}
	}
	return append(near, far...)
}

// assign deals inputs at hand and chosen coded packets out to processors, if possible at their ranks and results.
func (h *inventory) assign(chosen []int) []processor {
	procs := make([]processor, len(h.inputs))
	for p := range procs {
		procs[p] = processor{-1, -1, -1, -1}
	}
	put := func(p int, s processor) bool {
		if procs[p].from >= 0 {
			return false
		}
		procs[p] = s
		return true
	}
	var packets []processor
	for k, rank := range h.inputs {
		if rank < 0 {
			continue
		}
		s := processor{k, -1, rank, k}
		if first, end := h.hosted(rank); k < first || k >= end || !put(k, s) {
			packets = append(packets, s)
		}
	}
	for _, c := range chosen {
		packets = append(packets, processor{-1, c, h.coded[c], -1})
	}
	packets = slices.DeleteFunc(packets, func(s processor) bool {
		for p, end := h.hosted(s.from); p < end; p++ {
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
	lost := slices.DeleteFunc(h.lost(), func(k int) bool {
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

// decoder returns the matrix D with x = y·D for the packets y of processors and their results x. Inverse is that of A
// where it is known, else nil.
func decoder(a, inverse matrix.Matrix, procs []processor) (matrix.Matrix, error) {
	k, f := len(procs), a.Field()
	ordered := a.Cols() == k
	for p, s := range procs {
		ordered = ordered && s.coded == p && s.result == p
	}
	switch {
	case ordered && inverse != nil:
		return inverse, nil
	case ordered:
		return matrix.Inverse(a)
	}
	if err := matrix.CheckDense(f, k, k); err != nil {
		return nil, err
	}
	d := matrix.NewDense(f, k, k)
	var kept, lost, columns []int // inputs, inputs, coded packets
	var keptAt, lostAt []int      // their processors; those of columns are those of lost
	for p, s := range procs {
		if s.coded < 0 {
			kept, keptAt = append(kept, s.input), append(keptAt, p)
			d.Set(p, p, field.One)
		} else {
			lost, lostAt = append(lost, s.result), append(lostAt, p)
			columns = append(columns, s.coded)
		}
	}
	if len(lost) == 0 {
		return d, nil
	}
	back, err := solver.Solve(a, kept, lost, columns)
	if err != nil {
		return nil, err
	}
	for i, l := range lostAt {
		for j, p := range slices.Concat(keptAt, lostAt) {
			d.Set(p, l, back.At(j, i))
		}
	}
	return d, nil
}
