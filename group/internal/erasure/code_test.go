package erasure

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"volley"
	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/sim"
)

// TestTraffic adds runs up.
func TestTraffic(t *testing.T) {
	t.Parallel()
	sum := NewTraffic(3)
	Add(&sum, &protection.PlanTraffic{Plan: "one", C1: 1, C2Bytes: 2, TotalBytes: 3, Seconds: 4, Sent: []int64{5, 6}})
	Add(&sum, &protection.PlanTraffic{Plan: "two", C1: 10, C2Bytes: 20, TotalBytes: 30, Seconds: 40, Sent: []int64{70, 50, 1}})
	if want := (protection.PlanTraffic{Plan: "one", C1: 11, C2Bytes: 22, TotalBytes: 33, Seconds: 44, Sent: []int64{75, 56, 1}}); fmt.Sprint(sum) != fmt.Sprint(want) {
		t.Errorf("%+v: want %+v", sum, want)
	}
}

// TestCost checks what making parity costs by the model.
func TestCost(t *testing.T) {
	t.Parallel()
	set := &Environment{Network: sim.Network{Latency: time.Second, Gap: 2}, Memory: 1 << 20}
	c, err := NewCode(4, 3)
	must(t, err)
	x, err := c.Cost(t.Context(), set, 800)
	must(t, err)
	if x.Seconds != float64(x.Rounds)+2*float64(x.SentBytes) || x.StoredBytes != 3*800 {
		t.Errorf("%+v", x)
	}
}

// TestRepairing checks how the relay that brings packets back is cut.
func TestRepairing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		k, r   int
		pieces int
	}{{4, 2, 64}, {20, 2, mostPieces}, {2, 1, 32}} {
		c, err := NewCode(x.k, x.r)
		must(t, err)
		lost := map[content.Symbol]bool{{Node: 1, Parity: false, Index: 0}: true}
		r, beyond, err := c.Repairing(t.Context(), lost, lost)
		if err != nil || beyond != nil || r.Traffic.Pieces != x.pieces || len(r.Outputs[1]) != 1 {
			t.Errorf("%+v: %+v, %v, %v", x, r, beyond, err)
		}
	}
	c, err := NewCode(4, 1)
	must(t, err)
	lost := map[content.Symbol]bool{{Node: 0, Parity: false, Index: 0}: true, {Node: 0, Parity: true, Index: 0}: true, {Node: 1, Parity: false, Index: 0}: true, {Node: 1, Parity: false, Index: 1}: true, {Node: 1, Parity: false, Index: 2}: true, {Node: 1, Parity: true, Index: 0}: true}
	r, beyond, err := c.Repairing(t.Context(), lost, map[content.Symbol]bool{{Node: 0, Parity: false, Index: 0}: true, {Node: 1, Parity: true, Index: 0}: true})
	if err != nil || len(beyond)+len(r.Outputs[0])+len(r.Outputs[1]) != 2 || len(beyond) == 0 {
		t.Errorf("%v beyond, %+v, %v", beyond, r, err)
	}
}

// TestCodewords compares the codewords of a code with what symbols say of theirs.
func TestCodewords(t *testing.T) {
	t.Parallel()
	for _, x := range [][2]int{{2, 1}, {5, 2}, {5, 4}, {7, 1}} {
		m := &store.Manifest{Nodes: x[0], Tolerate: x[1]}
		c, err := CodeOf(m)
		must(t, err)
		for codeword, w := range c.Words {
			for _, s := range slices.Concat(w.Data, w.Parity) {
				if got := s.Codeword(m); got != codeword {
					t.Errorf("%v: %+v says codeword %d: want %d", x, s, got, codeword)
				}
			}
		}
	}
}

// TestRepairLoad checks what recovery of lost nodes takes at the busiest node, in packets a
// stripe: as TestRelayRecovery in package algo has it for ideal stripes.
func TestRepairLoad(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		k, r, f int
		want    string
	}{{16, 4, 1, "1.00"}, {16, 4, 2, "1.00"}, {16, 4, 4, "1.23"}, {64, 8, 4, "1.00"}, {16, 8, 8, "1.44"}} {
		c, err := NewCode(x.k, x.r)
		must(t, err)
		lost := map[content.Symbol]bool{}
		for _, w := range c.Words {
			for _, s := range slices.Concat(w.Data, w.Parity) {
				if s.Node*x.f%x.k < x.f { // nodes apart from each other
					lost[s] = true
				}
			}
		}
		r, _, err := c.Repairing(t.Context(), lost, lost)
		must(t, err)
		p, err := r.compile(&Environment{Network: volley.DefaultNetwork()}, 16*leastPiece)
		must(t, err)
		load := 0 // that a node sends, or receives
		for _, c := range p.Classes() {
			sent, received := 0, 0
			for _, r := range p.Schedule(c.Representative).Rounds {
				for _, x := range r.Sends {
					sent += len(x.Slots)
				}
				for _, x := range r.Recvs {
					received += x.Count
				}
			}
			load = max(load, sent, received)
		}
		stripe := float64(x.k * p.Info().PieceCount())
		got := float64(load) / stripe
		if c2 := float64(sim.Count(p).C2) / stripe; fmt.Sprintf("%.2f", got) != x.want || c2 > 1.1*got {
			t.Errorf("%+v: %.3f packets a stripe, C2 %.3f", x, got, c2)
		}
	}
}
