package matrix

import (
	"context"

	"volley/internal/poll"
)

// Ready makes what a matrix would make when it is first asked for an entry, such as the inverse of a dense matrix or the
// structure of its points. It returns the cause of the context when that ends first. The next who asks then makes it.
func Ready(ctx context.Context, m Matrix) (err error) {
	defer poll.Catch(&err)
	makeReady(poll.New(ctx), m)
	return nil
}

func makeReady(p *poll.Poller, m Matrix) {
	if r, ok := m.(interface{ ready(*poll.Poller) }); ok {
		r.ready(p)
	}
}

func (m named) ready(p *poll.Poller)     { makeReady(p, m.Matrix) }
func (m transpose) ready(p *poll.Poller) { makeReady(p, m.m) }
func (m *permuted) ready(p *poll.Poller) { makeReady(p, m.Matrix) }
func (m *rowBlock) ready(p *poll.Poller) { makeReady(p, m.of) }
