package session

import (
	"context"
	"slices"

	"volley/group/internal/store"
)

// RollForward commits a generation that all nodes have: from the first of these on it is the one that counts. Nodes that
// holdParity a committed one do it first: whoever runs a verb with the nodes of an earlier epoch then finds the new one.
func (s *Session) RollForward(ctx context.Context, g int64, root string) error {
	for _, later := range []bool{false, true} {
		if err := s.Here(func(_ int, n *store.Node) error {
			if slices.ContainsFunc(s.States[n.Index].Held, func(h store.Held) bool { return h.Committed }) == later {
				return nil
			}
			return n.RollForward(g, root)
		}); err != nil {
			return err
		}
		if !later && s.resized() {
			if err := s.Together(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// resized reports whether some of the nodes, and not all, have a generation of another number of nodes.
func (s *Session) resized() bool {
	return slices.ContainsFunc(s.States, func(x *store.State) bool {
		return slices.ContainsFunc(x.Held, func(h store.Held) bool { return h.Nodes != s.K })
	})
}

// Commit puts a generation in force that all nodes have, and removes what was before when all have done so.
func (s *Session) Commit(ctx context.Context, m *store.Manifest, root string) error {
	if err := s.RollForward(ctx, m.Generation, root); err != nil {
		return err
	}
	if err := s.Together(ctx); err != nil {
		return err
	}
	return s.Here(func(_ int, n *store.Node) error { return n.Clean(m.Generation) })
}
