package content

import "volley/group/internal/store"

// A Symbol is a chunk of a node, as part of a codeword.
type Symbol struct {
	Node   int
	Parity bool
	Index  int // among the node's chunks of the kind
}

// Codeword returns the codeword that has the chunk.
func (x Symbol) Codeword(m *store.Manifest) int {
	i := x.Index
	if !x.Parity {
		i += m.Tolerate
	}
	return (x.Node - i + m.Nodes) % m.Nodes
}

// Cell returns the number of the cell that has the block of the chunk in a row.
func (x Symbol) Cell(m *store.Manifest, row int) int { return x.Codeword(m)*m.Rows() + row }
