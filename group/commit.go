package group

import (
	"context"
	"slices"
	"volley/group/internal/store"
)

// rollForward commits a generation that all nodes have: from the first of these on it is the one that counts. Nodes that
// holdParity a committed one do it first: whoever runs a verb with the nodes of an earlier epoch then finds the new one.
func (s *session) rollForward(ctx context.Context, g int64, root string) error {
	for _, later := range []bool{false, true} {
		if err := s.here(func(_ int, n *store.Node) error {
			if slices.ContainsFunc(s.states[n.Index].Held, func(h store.Held) bool { return h.Committed }) == later {
				return nil
			}
			return n.RollForward(g, root)
		}); err != nil {
			return err
		}
		if !later && s.resized() {
			if err := s.together(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// resized reports whether some of the nodes, and not all, have a generation of another number of nodes.
func (s *session) resized() bool {
	return slices.ContainsFunc(s.states, func(x *store.State) bool {
		return slices.ContainsFunc(x.Held, func(h store.Held) bool { return h.Nodes != s.k })
	})
}

// commit puts a generation in force that all nodes have, and removes what was before when all have done so.
func (s *session) commit(ctx context.Context, m *Manifest, root string) error {
	if err := s.rollForward(ctx, m.Generation, root); err != nil {
		return err
	}
	if err := s.together(ctx); err != nil {
		return err
	}
	return s.here(func(_ int, n *store.Node) error { return n.Clean(m.Generation) })
}
