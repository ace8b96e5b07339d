package store

import "fmt"

// Layouts of parity.
const (
	Full    = "full"    // a coded packet for each node, as long as the longest node's data
	Striped = "striped" // R chunks of parity for each K-R of data
)

// Matrices of [Full].
const (
	Cauchy = "cauchy" // 1/(i + (K+j))
	FTI    = "fti"    // 1/(j + (K+i)), over GF(2^16): what FTI's level 3 stores
)

// mostByteNodes is how many nodes are coded over GF(2^8); more are over GF(2^16). mostNodes
// bounds the stripes, which are as many, and the manifest that all nodes store.
const (
	mostByteNodes = 128
	MostNodes     = 1024
)

// A shape is how the parity of a layout lies.
type shape struct {
	Field        string
	Data, Parity int // chunks of every node
}

// ShapeOf returns that of K nodes, of which R may be lost. The error says why the layout does not do.
func ShapeOf(k, r int, layout, name string) (x shape, err error) {
	switch {
	case k < 2:
		return x, fmt.Errorf("need at least 2 nodes, got %d", k)
	case r < 1 || r >= k:
		return x, fmt.Errorf("cannot tolerate the loss of %d of %d nodes: want 1 to %d", r, k, k-1)
	case layout == Full && 2*r > k:
		return x, fmt.Errorf("layout full cannot tolerate the loss of %d of %d nodes, as a lost node takes its data and its parity along: want %d or fewer, or layout striped", r, k, k/2)
	case k > MostNodes:
		return x, fmt.Errorf("a group of %d nodes: want %d or fewer, in several groups", k, MostNodes)
	}
	x.Field = "2^8"
	if k > mostByteNodes || name == FTI {
		x.Field = "2^16"
	}
	switch {
	case layout == Full && (name == Cauchy || name == FTI):
		x.Data, x.Parity = 1, 1
	case layout == Striped && name == Cauchy:
		x.Data, x.Parity = k-r, r
	case layout == Striped:
		return x, fmt.Errorf("matrix %s: layout striped has cauchy; leave it out, or take layout full", name)
	default:
		return x, fmt.Errorf("layout %q, matrix %q: want full or striped, and cauchy or fti", layout, name)
	}
	return x, nil
}
