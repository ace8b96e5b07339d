package judge

import (
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/store"
)

// An Exposure is how much of the protection is used up: each lost, damaged or changed block is an erasure in its cell.
type Exposure struct {
	manifest *store.Manifest
	erasures []int // by cell
	MayLose  int   // how many more nodes, whichever they are, before data are lost
	Uneven   bool  // it is blocks that let fewer nodes be lost, in some cells
}

// ExposureOf counts erasures. Each record has copies at so many nodes.
func ExposureOf(m *store.Manifest, conditions []*content.Condition, copies []int) *Exposure {
	x := &Exposure{manifest: m, erasures: make([]int, m.Nodes*m.Rows())}
	limit, largest := m.Tolerate, 0
	for n, c := range conditions {
		if c.Lost || c.Failing != "" || c.Foreign {
			limit--
		}
		largest = max(largest, x.erase(content.Symbol{Node: n}, c.Data), x.erase(content.Symbol{Node: n, Parity: true}, c.Parity))
	}
	limit = min(limit, slices.Min(copies)-1)
	x.MayLose = max(0, min(limit, m.Tolerate-largest))
	x.Uneven = x.MayLose < limit
	return x
}

// erase counts the rows of chunks that are bad, and returns the largest number of a cell among them.
func (x *Exposure) erase(symbol content.Symbol, chunks [][]int) (largest int) {
	for chunk, rows := range chunks {
		symbol.Index = chunk
		for _, row := range rows {
			cell := symbol.Cell(x.manifest, row)
			x.erasures[cell]++
			largest = max(largest, x.erasures[cell])
		}
	}
	return largest
}

// Takes reports whether the loss of MayLose+1 nodes, its own among them, takes a block for ever. Its own erasure is one.
func (x *Exposure) Takes(symbol content.Symbol, row int, erased bool) bool {
	count := x.erasures[symbol.Cell(x.manifest, row)]
	if erased {
		count--
	}
	return x.manifest.Tolerate-count <= x.MayLose
}
