package group

import (
	"testing"

	"volley/plan"
)

// mostSent returns how many packets the processor that sends most sends.
func mostSent(t *testing.T, p plan.Plan) (most float64) {
	info := p.Info()
	for i := range info.Processors {
		program, err := p.Program(i)
		must(t, err)
		elements := 0
		for _, round := range program.Rounds {
			for _, send := range round.Sends {
				elements += len(send.Slots)
			}
		}
		most = max(most, float64(elements)/float64(info.PieceCount()))
	}
	return most
}

// TestPayload counts what the busiest node of layout striped sends, in chunks, of which a node has K-R of data, beside
// redset's. By the bytes of its MPI messages, redset sends R·(K-R) chunks to protect, and K+f-1 to rebuild f nodes: so
// for K = 8 and R = 2, 3, 4, and for K = 16 and R = 4. To rebuild three or four nodes Volley may send 5 % more.
func TestPayload(t *testing.T) {
	for _, k := range []int{4, 8, 16} {
		for r := 1; r <= 4 && r < k; r++ {
			c, err := newCode(k, r, Striped, Cauchy)
			must(t, err)
			o := &Options{}
			o.defaults()
			making, err := c.making(o, 16<<20)
			must(t, err)
			p, err := making.compile(o, 16<<20)
			must(t, err)
			if sent, theirs := mostSent(t, p), float64(r*(k-r)); sent > 1.03*theirs {
				t.Errorf("K = %d, R = %d: protect sends %.2f chunks, redset %.2f", k, r, sent, theirs)
			}
			for f := 1; f <= r; f++ {
				bad, most := map[symbol]bool{}, 1.03
				if f > 2 {
					most = 1.05
				}
				for n := range f {
					for i := range c.data {
						bad[symbol{n * k / f, false, i}] = true
					}
					for i := range c.parity {
						bad[symbol{n * k / f, true, i}] = true
					}
				}
				relay, lost, err := c.repairing(bad, bad)
				must(t, err)
				p, err := relay.compile(o, 16<<20)
				must(t, err)
				if sent, theirs := mostSent(t, p), float64(k+f-1); sent > most*theirs || lost != nil {
					t.Errorf("K = %d, R = %d, %d lost: the rebuild sends %.2f chunks, redset %.2f", k, r, f, sent, theirs)
				}
			}
		}
	}
}
