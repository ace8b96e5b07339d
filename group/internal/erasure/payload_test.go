package erasure

import (
	"math"
	"slices"
	"testing"

	"volley"
	"volley/group/internal/content"
	"volley/plan"
)

// busiest returns how many packets the busiest processor of a plan sends, or receives.
func busiest(t *testing.T, p plan.Plan) (sent, received float64) {
	info := p.Info()
	sends, receives := make([]float64, info.Processors), make([]float64, info.Processors)
	for i := range info.Processors {
		program, err := p.Program(i)
		must(t, err)
		for _, round := range program.Rounds {
			for _, s := range round.Sends {
				sends[i] += float64(len(s.Slots)) / float64(info.PieceCount())
				receives[s.Dst] += float64(len(s.Slots)) / float64(info.PieceCount())
			}
		}
	}
	return slices.Max(sends), slices.Max(receives)
}

// bestMix returns what the busiest node sends, or receives, at least, where f of K nodes come back and each piece has a
// lead: of m sources and f sinks, a lead among the sources has m+f-1 packets sent by sources and f received by
// sinks, and one among the sinks m and m+f-1. No node has less than the mean of those like it.
func bestMix(k, r, f int) float64 {
	m, sinks, sources := float64(k-r), float64(f), float64(k-f)
	least := math.Inf(1)
	for n := range 10_001 {
		x := float64(n) / 10_000 // the share of the sources
		least = min(least, float64(k)*max((m+x*(sinks-1))/sources, (x*sinks+(1-x)*(m+sinks-1))/sinks))
	}
	return least
}

// TestPayload counts what the busiest node sends or receives, in chunks, of which a node has K-R of
// data, beside redset's. redset sends and receives R·(K-R) chunks to protect. To rebuild f nodes by XOR a node sends and
// receives K; by Reed-Solomon all exchange K-1, and each sends f to the lost nodes, which receive K-1 more. The mix of
// leads is within 3 % of the best one.
func TestPayload(t *testing.T) {
	t.Parallel()
	for k := 3; k <= 16; k++ {
		for r := 1; r <= 4 && r < k; r++ {
			c, err := NewCode(k, r)
			must(t, err)
			set := &Environment{Memory: volley.DefaultMemory, Network: volley.DefaultNetwork()}
			making, err := c.Making(t.Context())
			must(t, err)
			p, err := making.compile(set, 16<<20)
			must(t, err)
			sent, received := busiest(t, p)
			if redset := float64(r * (k - r)); max(sent, received) > 1.03*redset {
				t.Errorf("K = %d, R = %d: protect sends %.2f chunks and receives %.2f, redset %.2f", k, r, sent, received, redset)
			}
			for f := 1; f <= r; f++ {
				bad := map[content.Symbol]bool{}
				for n := range f {
					for i := range c.Data {
						bad[content.Symbol{Node: n * k / f, Parity: false, Index: i}] = true
					}
					for i := range c.Parity {
						bad[content.Symbol{Node: n * k / f, Parity: true, Index: i}] = true
					}
				}
				relay, lost, err := c.Repairing(t.Context(), bad, bad)
				must(t, err)
				p, err := relay.compile(set, 16<<20)
				must(t, err)
				sent, received := busiest(t, p)
				redset := float64(k)
				if r > 1 {
					redset = float64(k - 1 + max(f, k-1))
				}
				if load := max(sent, received); load > 1.03*redset || load > 1.03*bestMix(k, r, f) || lost != nil {
					t.Errorf("K = %d, R = %d, %d lost: the rebuild sends %.2f chunks and receives %.2f, redset %.2f, the best mix %.2f", k, r, f, sent, received, redset, bestMix(k, r, f))
				}
			}
		}
	}
}
