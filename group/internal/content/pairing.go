package content

import (
	"volley/group/internal/store"
	"volley/internal/twosums"
)

// A Pairing digests parts, two at a time if that is faster. A part must not change until the next Add or Flush.
type Pairing struct {
	M         *store.Manifest
	sum, part []byte // of the part that waits for a second one
}

func (p *Pairing) Add(sum, part []byte) {
	switch {
	case p.M.Digest != store.SHA256:
		p.M.AppendSum(sum[:0], part)
	case p.part == nil:
		p.sum, p.part = sum, part
	default:
		twosums.SHA256(p.sum, sum, p.part, part)
		p.part = nil
	}
}

func (p *Pairing) Flush() {
	if p.part != nil {
		p.M.AppendSum(p.sum[:0], p.part)
		p.part = nil
	}
}
