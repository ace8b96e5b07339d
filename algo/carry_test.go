package algo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"volley/algo"
	"volley/matrix/matrices"
	"volley/sim"
)

// TestCarry has the planner look for plans of no more ports than are carried, and take none of more rounds.
func TestCarry(t *testing.T) {
	refused := errors.New("refused")
	within := func(rounds, ports int) func(rounds, ports int) error {
		return func(r, p int) error {
			if r > rounds || p > ports {
				return fmt.Errorf("%w: %d rounds, %d ports", refused, r, p)
			}
			return nil
		}
	}
	paper := sim.Model{Tau: 1e-9, Bytes: 1 << 30, SymbolBytes: 1}
	far := sim.Model{Network: sim.Network{Latency: time.Second, Gap: 1e-9}, Bytes: 64, SymbolBytes: 1}
	for _, x := range []struct {
		model sim.Model
		ports int
	}{{paper, 1}, {paper, 9}, {far, 0}} {
		p := shaped(t, "2^8", matrices.Spec{Family: "cauchy"}, 20, 3, false, x.ports)
		free := must(algo.Choose(algo.Auto, p, x.model))(t).Info()
		broken := 0
		for _, most := range [][2]int{{100, 2}, {6, 19}, {8, 1}, {free.Rounds(), free.Ports}, {free.Rounds() - 1, 19}} {
			own := p.CarriedBy(within(most[0], most[1]))
			q, err := algo.Choose(algo.Auto, own, x.model)
			if err != nil {
				if fewest := p.Bound(p.MostPorts(), 1).C1; !errors.Is(err, refused) || most[0] > fewest {
					t.Errorf("p = %d, %v: %v", x.ports, most, err)
				}
				continue
			}
			if i := q.Info(); i.Rounds() > most[0] || i.Ports > most[1] {
				t.Errorf("p = %d, %v: %s takes %d rounds of %d ports", x.ports, most, i.Algorithm, i.Rounds(), i.Ports)
			}
			list, _ := algo.Candidates(own, x.model)
			for _, c := range list {
				i := c.Plan.Info()
				if i.Ports > most[1] {
					t.Errorf("p = %d, %v: the candidate %s has %d ports", x.ports, most, i.Algorithm, i.Ports)
				}
				if says := strings.HasPrefix(c.Broken, "refused: "); says != (i.Rounds() > most[0]) {
					t.Errorf("p = %d, %v: the candidate %s of %d rounds is broken: %q", x.ports, most, i.Algorithm, i.Rounds(), c.Broken)
				} else if says {
					broken++
				}
			}
		}
		if x.model == paper && broken == 0 {
			t.Errorf("p = %d: no candidate is broken", x.ports)
		}
		_, err := algo.Choose(algo.Auto, p.CarriedBy(within(0, 1)), x.model)
		if !errors.Is(err, refused) || !strings.HasPrefix(err.Error(), "algo: the transport cannot carry the plan ") {
			t.Errorf("p = %d: nothing is carried: %v", x.ports, err)
		}
	}
}
