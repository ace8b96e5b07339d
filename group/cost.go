package group

import (
	"context"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/sim"
)

// A Cost is what a layout takes.
type Cost struct {
	Layout      string  `json:"layout"`
	Possible    bool    `json:"possible"`
	StoredBytes int64   `json:"stored_bytes"` // of parity, at each node
	SentBytes   int64   `json:"sent_bytes"`   // by the busiest node, or received
	Messages    int     `json:"messages"`     // of that node
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"model_seconds"`
	Plan        string  `json:"plan"`
	Why         string  `json:"why,omitempty"` // it is not possible
}

type candidate struct {
	Cost
	code *code // nil: it does not do
}

// candidates returns all layouts for K and R, or an error where none will do, or the one asked for will not.
func candidates(k, r int, asked, name string) ([]*candidate, error) {
	if asked != "" && asked != Full && asked != Striped {
		return nil, store.Inputf("layout %q: want full or striped", asked)
	}
	var list []*candidate
	var why error // the last one says what is wrong with the numbers, unless it is the matrix
	possible := false
	for _, layout := range []string{Full, Striped} {
		c, err := newCode(k, r, layout, name)
		x := &candidate{Cost: Cost{Layout: layout, Possible: err == nil}, code: c}
		if err != nil {
			x.Why = err.Error()
		}
		list = append(list, x)
		if asked != "" && asked != layout {
			continue
		}
		if possible = possible || err == nil; why == nil || name != FTI {
			why = err
		}
	}
	if !possible {
		return nil, &InputError{Err: why}
	}
	return list, nil
}

// setCosts sets what candidates take for that much data at the node that has most.
func setCosts(ctx context.Context, set *setting, list []*candidate, most int64) error {
	for _, x := range list {
		if x.code == nil {
			continue
		}
		m := Manifest{DataChunks: x.code.data, ParityChunks: x.code.parity}
		m.Geometry(most, nil)
		r, err := x.code.making(ctx, set, m.ChunkBytes)
		if err != nil {
			return err
		}
		x.StoredBytes = int64(x.code.parity) * m.ChunkBytes
		if err := x.of(r, x.code, set, m.ChunkBytes); err != nil {
			return err
		}
	}
	return nil
}

// of sets what a repair takes, of chunks of so many bytes.
func (x *Cost) of(r *repair, c *code, set *setting, bytes int64) error {
	p, err := r.compile(set, bytes)
	if err != nil {
		return err
	}
	cost := sim.Count(p)
	x.Plan, x.Rounds, x.Messages = p.Info().Algorithm, cost.C1, cost.Messages()
	x.SentBytes = int64(cost.NodePackets() * float64(bytes))
	x.Seconds = set.model(c.field, bytes).Time(cost).Seconds()
	return nil
}

// estimate returns what making parity takes of nodes that have so many bytes of data each, and bringing back lost nodes.
func estimate(nodes, tolerate int, layout string, bytes int64, set *setting, lost []int) (protect, recovery Cost, err error) {
	c, err := newCode(nodes, tolerate, layout, Cauchy)
	if err != nil {
		return protect, recovery, err
	}
	m := Manifest{DataChunks: c.data, ParityChunks: c.parity}
	m.Geometry(bytes, nil)
	protect = Cost{Layout: layout, Possible: true, StoredBytes: int64(c.parity) * m.ChunkBytes}
	r, err := c.making(context.Background(), set, m.ChunkBytes)
	if err == nil {
		err = protect.of(r, c, set, m.ChunkBytes)
	}
	if err != nil || len(lost) == 0 {
		return protect, recovery, err
	}
	bad := map[content.Symbol]bool{}
	for _, w := range c.words {
		for _, x := range slices.Concat(w.data, w.parity) {
			if slices.Contains(lost, x.Node) {
				bad[x] = true
			}
		}
	}
	r, gone, err := c.repairing(bad, bad)
	if err != nil || len(gone) > 0 {
		return protect, recovery, err
	}
	recovery = Cost{Layout: layout, Possible: true}
	return protect, recovery, recovery.of(r, c, set, m.ChunkBytes)
}

// chooseLayout returns the candidate asked for, else that of before, else striped, unless full is much faster.
func chooseLayout(list []*candidate, asked, matrix string, tolerate int, earlier *Manifest) *candidate {
	switch {
	case asked != "":
	case matrix == FTI:
		asked = Full
	case earlier != nil && earlier.Tolerate == tolerate:
		asked = earlier.Layout
	}
	var best *candidate
	for _, x := range list {
		if x.code == nil || asked != "" && asked != x.Layout {
			continue
		}
		if best == nil || x.Layout == Striped && x.Seconds <= muchFaster*best.Seconds {
			best = x
		}
	}
	return best
}

// muchFaster is how many times as long striped may take.
const muchFaster = 2
