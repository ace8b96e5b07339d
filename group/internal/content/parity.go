package content

import (
	"io"

	"volley/group/internal/store"
)

// A ParityReader reads the parity of a node.
type ParityReader interface {
	io.ReaderAt
	io.Closer
}

// ParityOf returns the parity of a node; reading what cannot be opened, such as that of a lost node, fails.
func ParityOf(n *store.Node, g int64) ParityReader {
	f, err := n.OpenParity(g)
	if err != nil {
		return unreadable{err}
	}
	return f
}

type unreadable struct{ err error }

func (u unreadable) ReadAt([]byte, int64) (int, error) { return 0, u.err }

func (unreadable) Close() error { return nil }
