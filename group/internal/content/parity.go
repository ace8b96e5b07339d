package content

import (
	"errors"
	"io/fs"
	"os"

	"volley/group/internal/store"
	"volley/internal/disk"
)

// A Parity is the parity of a node in a generation, to be read. To read what cannot be opened, such as that of a lost
// node, fails. One goroutine reads it at a time.
type Parity struct {
	node    *store.Node
	m       *store.Manifest
	handles Handles[string]
	Loaded  *store.Loaded
	Changes *store.Changes
	Wrong   error // why not all its files are there as they were made; nil: they are
	Failing error // the first failure of the disk
}

// ParityOf returns the parity that a node has of a generation.
func ParityOf(n *store.Node, m *store.Manifest) *Parity {
	p := &Parity{node: n, m: m, Loaded: n.Generation(m.Generation)}
	if p.Changes, p.Wrong = n.Changes(p.Loaded, m); disk.Failed(p.Wrong) {
		p.Failing = p.Wrong
	}
	return p
}

// ReadAt reads a part of a block.
func (p *Parity) ReadAt(part []byte, offset int64) (n int, err error) {
	if p.node.Dir == nil {
		return 0, p.Wrong
	}
	name, start := p.Changes.Place(p.m, offset)
	f, err := p.handles.Get(name, func() (disk.File, error) { return p.node.Dir.OpenFile(p.Loaded.Path(name), os.O_RDONLY, 0) })
	failed := err != nil && !errors.Is(err, fs.ErrNotExist)
	if err == nil {
		n, err = f.ReadAt(part, start)
		failed = disk.Failed(err)
	}
	if p.Failing == nil && failed {
		p.Failing = err
	}
	return n, err
}

func (p *Parity) Close() { p.handles.Close() }
