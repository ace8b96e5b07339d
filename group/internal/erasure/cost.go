package erasure

import (
	"context"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/sim"
)

// Cost returns the cost of making parity, if the node with most data has dataBytes.
func (c *Code) Cost(ctx context.Context, set *Environment, dataBytes int64) (*protection.CodingCost, error) {
	bytes := store.ChunkBytes(dataBytes, c.Data)
	r, err := c.Making(ctx)
	if err != nil {
		return nil, err
	}
	x, err := r.costOf(set, bytes)
	if err == nil {
		x.StoredBytes = int64(c.Parity) * bytes
	}
	return x, err
}

// costOf returns what a repair takes, of chunks of so many bytes.
func (r *Repair) costOf(set *Environment, bytes int64) (*protection.CodingCost, error) {
	p, err := r.compile(set, bytes)
	if err != nil {
		return nil, err
	}
	cost := sim.Count(p)
	return &protection.CodingCost{
		Plan: p.Info().Algorithm, Rounds: cost.C1, Messages: cost.Messages(), SentBytes: int64(cost.NodePackets() * float64(bytes)),
		Seconds: set.model(r.Traffic.Field, bytes).Time(cost).Seconds(),
	}, nil
}

// Estimate returns the costs of protecting nodes with so many bytes each, and of recovering lost nodes. The second is nil
// if none is lost, or too many.
func Estimate(nodes, tolerate int, bytes int64, set *Environment, lost []int) (protect, recovery *protection.CodingCost, err error) {
	c, err := NewCode(nodes, tolerate)
	if err != nil {
		return nil, nil, err
	}
	if protect, err = c.Cost(context.Background(), set, bytes); err != nil || len(lost) == 0 {
		return protect, nil, err
	}
	bad := map[content.Symbol]bool{}
	for _, w := range c.Words {
		for _, x := range slices.Concat(w.Data, w.Parity) {
			if slices.Contains(lost, x.Node) {
				bad[x] = true
			}
		}
	}
	r, unrecoverable, err := c.Repairing(context.Background(), bad, bad)
	if err != nil || len(unrecoverable) > 0 {
		return protect, nil, err
	}
	recovery, err = r.costOf(set, store.ChunkBytes(bytes, c.Data))
	return protect, recovery, err
}
