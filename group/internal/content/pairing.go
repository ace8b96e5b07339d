package content

import (
	"volley/group/internal/store"
	"volley/internal/twosums"
)

// A Pairing digests parts, two at a time where that is faster. A part stays as it is until the next add, or flush.
type Pairing struct {
	M        *store.Manifest
	to, part []byte // that wait for another part
}

func (p *Pairing) Add(to, part []byte) {
	switch {
	case p.M.Digest != store.SHA256:
		p.M.AppendSum(to[:0], part)
	case p.part == nil:
		p.to, p.part = to, part
	default:
		twosums.SHA256(p.to, to, p.part, part)
		p.part = nil
	}
}

func (p *Pairing) Flush() {
	if p.part != nil {
		p.M.AppendSum(p.to[:0], p.part)
		p.part = nil
	}
}
