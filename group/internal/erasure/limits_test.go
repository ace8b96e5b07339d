package erasure

import (
	"errors"
	"testing"

	"volley"
	"volley/group/internal/content"
	"volley/group/protection"
	"volley/transport"
	"volley/transport/local"
)

// narrow is a transport with few tags.
type narrow struct {
	transport.Transport
	limits transport.Limits
}

func (n narrow) Limits() transport.Limits { return n.limits }

// TestLimits has plans of groups keep to what a transport carries: those that make parity, and those that bring a node
// back, with fewer pieces where that takes fewer rounds.
func TestLimits(t *testing.T) {
	t.Parallel()
	block := func(rounds, ports int) transport.Block {
		return transport.Block{Rounds: transport.ControlRounds + rounds, Ports: ports}
	}
	for _, x := range []struct {
		blocks transport.Limits
		fits   bool
		pieces bool // of the plan that brings a node back
	}{
		{transport.Limits{}, true, true},
		{transport.Limits{block(1<<20, 1)}, true, true},
		{transport.Limits{block(40, 1), block(2, 19)}, true, false},
		{transport.Limits{block(2, 1)}, false, false},
	} {
		set := &Environment{Memory: volley.DefaultMemory, Network: volley.DefaultNetwork(), T: narrow{local.New(20)[0], x.blocks}}
		carries := func(r *Repair) int {
			p, err := r.compile(set, 1<<30)
			if x.fits != (err == nil) || err != nil && (!errors.As(err, new(*transport.LimitsError)) || !errors.As(err, new(*protection.RefusedError))) {
				t.Errorf("%v: %v", x.blocks, err)
			}
			if err != nil {
				return 0
			}
			if err := x.blocks.Carry(p.Info().Rounds(), p.Info().Ports); err != nil {
				t.Errorf("%v: %s: %v", x.blocks, p.Info().Algorithm, err)
			}
			return p.Info().PieceCount()
		}
		c, err := NewCode(20, 2)
		must(t, err)
		making, err := c.Making(t.Context())
		must(t, err)
		carries(making)
		lost := map[content.Symbol]bool{}
		for _, w := range c.Words {
			for _, s := range w.Data {
				if s.Node == 1 {
					lost[s] = true
				}
			}
		}
		repair, _, err := c.Repairing(t.Context(), lost, lost)
		must(t, err)
		if pieces := carries(repair); x.fits && (pieces == repair.Traffic.Pieces) != x.pieces {
			t.Errorf("%v: %d pieces of %d", x.blocks, pieces, repair.Traffic.Pieces)
		}
	}
}
