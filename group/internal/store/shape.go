package store

import "fmt"

// mostByteNodes is how many nodes are coded over GF(2^8); more are over GF(2^16). mostNodes
// bounds the stripes, which are as many, and the manifest that all nodes store.
const (
	mostByteNodes = 128
	MostNodes     = 1024
)

// A Shape is how the parity of a group lies: R chunks of it at each node for K-R of data.
type Shape struct {
	Field        string
	Data, Parity int // chunks of every node
}

// ShapeOf returns that of K nodes, of which R may be lost. The error says why there is none.
func ShapeOf(k, r int) (x Shape, err error) {
	switch {
	case k < 2:
		return x, fmt.Errorf("need at least 2 nodes, got %d", k)
	case r < 1 || r >= k:
		return x, fmt.Errorf("cannot tolerate the loss of %d of %d nodes: want 1 to %d", r, k, k-1)
	case k > MostNodes:
		return x, fmt.Errorf("a group of %d nodes: want %d or fewer, in several groups", k, MostNodes)
	}
	x = Shape{Field: "2^8", Data: k - r, Parity: r}
	if k > mostByteNodes {
		x.Field = "2^16"
	}
	return x, nil
}
