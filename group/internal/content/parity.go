package content

import (
	"volley/group/internal/store"
	"volley/internal/disk"
)

// A Parity is the parity of a node, to be read. To read what cannot be opened, such as that of a lost node, fails.
type Parity struct {
	File    disk.File // nil: it cannot be opened
	Failing error     // the first failure of the disk
}

// ParityOf returns the parity that a node has of a generation.
func ParityOf(n *store.Node, g int64) *Parity {
	f, err := n.OpenParity(g)
	if err != nil {
		return &Parity{Failing: err}
	}
	return &Parity{File: f}
}

func (p *Parity) ReadAt(block []byte, offset int64) (int, error) {
	if p.File == nil {
		return 0, p.Failing
	}
	n, err := p.File.ReadAt(block, offset)
	if p.Failing == nil && disk.Failed(err) {
		p.Failing = err
	}
	return n, err
}

func (p *Parity) Close() error {
	if p.File == nil {
		return nil
	}
	return p.File.Close()
}
