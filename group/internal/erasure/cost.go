package erasure

import (
	"context"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/sim"
)

type Candidate struct {
	protection.LayoutCost
	Code *Code // nil: it does not do
}

// Candidates returns all layouts for K and R, or an error where none will do, or the one asked for will not.
func Candidates(k, r int, asked, name string) ([]*Candidate, error) {
	if asked != "" && asked != store.Full && asked != store.Striped {
		return nil, store.Inputf("layout %q: want full or striped", asked)
	}
	var list []*Candidate
	var why error // the last one says what is wrong with the numbers, unless it is the matrix
	possible := false
	for _, layout := range []string{store.Full, store.Striped} {
		c, err := NewCode(k, r, layout, name)
		x := &Candidate{LayoutCost: protection.LayoutCost{Layout: layout, Possible: err == nil}, Code: c}
		if err != nil {
			x.Why = err.Error()
		}
		list = append(list, x)
		if asked != "" && asked != layout {
			continue
		}
		if possible = possible || err == nil; why == nil || name != store.FTI {
			why = err
		}
	}
	if !possible {
		return nil, &protection.RefusedError{Err: why}
	}
	return list, nil
}

// SetCosts sets what candidates take for that much data at the node that has most.
func SetCosts(ctx context.Context, set *Setting, list []*Candidate, most int64) error {
	for _, x := range list {
		if x.Code == nil {
			continue
		}
		m := store.Manifest{DataChunks: x.Code.Data, ParityChunks: x.Code.Parity}
		m.Geometry(most, nil)
		r, err := x.Code.Making(ctx, set, m.ChunkBytes)
		if err != nil {
			return err
		}
		x.StoredBytes = int64(x.Code.Parity) * m.ChunkBytes
		if err := setCost(&x.LayoutCost, r, x.Code, set, m.ChunkBytes); err != nil {
			return err
		}
	}
	return nil
}

// of sets what a repair takes, of chunks of so many bytes.
func setCost(x *protection.LayoutCost, r *Repair, c *Code, set *Setting, bytes int64) error {
	p, err := r.compile(set, bytes)
	if err != nil {
		return err
	}
	cost := sim.Count(p)
	x.Plan, x.Rounds, x.Messages = p.Info().Algorithm, cost.C1, cost.Messages()
	x.SentBytes = int64(cost.NodePackets() * float64(bytes))
	x.Seconds = set.model(c.Field, bytes).Time(cost).Seconds()
	return nil
}

// Estimate returns what making parity takes of nodes that have so many bytes of data each, and bringing back lost nodes.
func Estimate(nodes, tolerate int, layout string, bytes int64, set *Setting, lost []int) (protect, recovery protection.LayoutCost, err error) {
	c, err := NewCode(nodes, tolerate, layout, store.Cauchy)
	if err != nil {
		return protect, recovery, err
	}
	m := store.Manifest{DataChunks: c.Data, ParityChunks: c.Parity}
	m.Geometry(bytes, nil)
	protect = protection.LayoutCost{Layout: layout, Possible: true, StoredBytes: int64(c.Parity) * m.ChunkBytes}
	r, err := c.Making(context.Background(), set, m.ChunkBytes)
	if err == nil {
		err = setCost(&protect, r, c, set, m.ChunkBytes)
	}
	if err != nil || len(lost) == 0 {
		return protect, recovery, err
	}
	bad := map[content.Symbol]bool{}
	for _, w := range c.Words {
		for _, x := range slices.Concat(w.Data, w.Parity) {
			if slices.Contains(lost, x.Node) {
				bad[x] = true
			}
		}
	}
	r, gone, err := c.Repairing(context.Background(), bad, bad)
	if err != nil || len(gone) > 0 {
		return protect, recovery, err
	}
	recovery = protection.LayoutCost{Layout: layout, Possible: true}
	return protect, recovery, setCost(&recovery, r, c, set, m.ChunkBytes)
}

// ChooseLayout returns the candidate asked for, else that of before, else striped, unless full is much faster.
func ChooseLayout(list []*Candidate, asked, matrix string, tolerate int, earlier *store.Manifest) *Candidate {
	switch {
	case asked != "":
	case matrix == store.FTI:
		asked = store.Full
	case earlier != nil && earlier.Tolerate == tolerate:
		asked = earlier.Layout
	}
	var best *Candidate
	for _, x := range list {
		if x.Code == nil || asked != "" && asked != x.Layout {
			continue
		}
		if best == nil || x.Layout == store.Striped && x.Seconds <= muchFaster*best.Seconds {
			best = x
		}
	}
	return best
}

// muchFaster is how many times as long striped may take.
const muchFaster = 2
