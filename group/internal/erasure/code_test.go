package erasure

import (
	"fmt"
	"slices"
	"strings"
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

// TestChooseLayout checks which layout is taken, and what it costs by the model.
func TestChooseLayout(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what          string
		asked         string
		tolerate      int
		matrix        string
		full, striped float64 // seconds; below 0: it does not do
		earlier       *store.Manifest
		want          string
	}{
		{"as fast", "", 0, store.Cauchy, 1, 1, nil, store.Striped},
		{"twice as long", "", 0, store.Cauchy, 1, 2, nil, store.Striped},
		{"more than that", "", 0, store.Cauchy, 1, 2.01, nil, store.Full},
		{"asked for full", store.Full, 0, store.Cauchy, 9, 1, nil, store.Full},
		{"asked for striped", store.Striped, 0, store.Cauchy, 1, 9, nil, store.Striped},
		{"fti", "", 0, store.FTI, 9, 1, nil, store.Full},
		{"as before", "", 2, store.Cauchy, 9, 1, &store.Manifest{Layout: store.Full, Tolerate: 2}, store.Full},
		{"before it tolerated less", "", 2, store.Cauchy, 9, 1, &store.Manifest{Layout: store.Full, Tolerate: 1}, store.Striped},
		{"full does not do", "", 0, store.Cauchy, -1, 9, nil, store.Striped},
	} {
		list := []*Candidate{{LayoutCost: protection.LayoutCost{Layout: store.Full, Seconds: x.full}}, {LayoutCost: protection.LayoutCost{Layout: store.Striped, Seconds: x.striped}}}
		for i := range list {
			if list[i].Seconds > 0 {
				list[i].Code = &Code{}
			}
		}
		if is := ChooseLayout(list, x.asked, x.matrix, x.tolerate, x.earlier); is.Layout != x.want {
			t.Errorf("%s: %s: want %s", x.what, is.Layout, x.want)
		}
	}
	for _, x := range []struct {
		r     int
		asked string
		name  string
		want  [2]bool // possible: full, striped
		error string
	}{
		{2, "", store.Cauchy, [2]bool{true, true}, ""},
		{3, "", store.Cauchy, [2]bool{false, true}, ""},
		{2, "", store.FTI, [2]bool{true, false}, ""},
		{3, store.Full, store.Cauchy, [2]bool{}, "layout full cannot tolerate"},
		{3, "", store.FTI, [2]bool{}, "layout full cannot tolerate"},
		{2, store.Striped, store.FTI, [2]bool{}, "matrix fti: layout striped has cauchy"},
		{4, "", store.Cauchy, [2]bool{}, "cannot tolerate the loss of 4 of 4"},
	} {
		list, err := Candidates(4, x.r, x.asked, x.name)
		if (x.error == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.error) {
			t.Errorf("%+v: %v: want %q", x, err, x.error)
			continue
		}
		for i, c := range list {
			if c.Possible != x.want[i] || (c.Code != nil) != x.want[i] || (c.Why == "") != x.want[i] {
				t.Errorf("%+v: %+v", x, c)
			}
		}
	}
	set := &Setting{Network: sim.Network{Latency: time.Second, Gaps: sim.Gaps{{Messages: 1, PerByte: 2}}}, Memory: 1 << 20}
	list, err := Candidates(4, 3, "", store.Cauchy)
	must(t, err)
	must(t, SetCosts(t.Context(), set, list, 800))
	if c := list[1]; c.Seconds != float64(c.Rounds)+2*float64(c.SentBytes) || c.StoredBytes != 3*800 || list[0].Rounds != 0 {
		t.Errorf("%+v", list)
	}
}

// TestRepairing checks how the relay that brings packets back is cut.
func TestRepairing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		k, r   int
		layout string
		pieces int
	}{{4, 2, store.Full, 64}, {20, 2, store.Full, mostPieces}, {4, 2, store.Striped, 64}, {2, 1, store.Striped, 32}} {
		c, err := NewCode(x.k, x.r, x.layout, store.Cauchy)
		must(t, err)
		lost := map[content.Symbol]bool{{Node: 1, Parity: false, Index: 0}: true}
		r, beyond, err := c.Repairing(t.Context(), lost, lost)
		if err != nil || beyond != nil || r.Traffic.Pieces != x.pieces || len(r.Outputs[1]) != 1 {
			t.Errorf("%+v: %+v, %v, %v", x, r, beyond, err)
		}
	}
	c, err := NewCode(4, 1, store.Striped, store.Cauchy)
	must(t, err)
	lost := map[content.Symbol]bool{{Node: 0, Parity: false, Index: 0}: true, {Node: 0, Parity: true, Index: 0}: true, {Node: 1, Parity: false, Index: 0}: true, {Node: 1, Parity: false, Index: 1}: true, {Node: 1, Parity: false, Index: 2}: true, {Node: 1, Parity: true, Index: 0}: true}
	r, beyond, err := c.Repairing(t.Context(), lost, map[content.Symbol]bool{{Node: 0, Parity: false, Index: 0}: true, {Node: 1, Parity: true, Index: 0}: true})
	if err != nil || len(beyond)+len(r.Outputs[0])+len(r.Outputs[1]) != 2 || len(beyond) == 0 {
		t.Errorf("%v beyond, %+v, %v", beyond, r, err)
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
		c, err := NewCode(x.k, x.r, store.Striped, store.Cauchy)
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
		p, err := r.compile(&Setting{Network: volley.DefaultNetwork()}, 16*leastPiece)
		must(t, err)
		most := 0 // that a node sends, or receives
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
			most = max(most, sent, received)
		}
		stripe := float64(x.k * p.Info().PieceCount())
		got := float64(most) / stripe
		if c2 := float64(sim.Count(p).C2) / stripe; fmt.Sprintf("%.2f", got) != x.want || c2 > 1.1*got {
			t.Errorf("%+v: %.3f packets a stripe, C2 %.3f", x, got, c2)
		}
	}
}
