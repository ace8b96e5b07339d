package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"volley/group/internal/store"
	"volley/internal/printable"
)

// RollForward commits a generation that all nodes have: once the first node has committed it, it is in force. Nodes that
// hold a committed one do it first: whoever runs a verb with the nodes of an earlier epoch then finds the new one.
func (s *Session) RollForward(ctx context.Context, g int64, root string) error {
	for _, later := range []bool{false, true} {
		if err := s.EachLocal(func(_ int, n *store.Node) error {
			if slices.ContainsFunc(s.States[n.Index].Held, func(h store.Held) bool { return h.Committed }) == later {
				return nil
			}
			return n.RollForward(g, root)
		}); err != nil {
			return err
		}
		if !later && s.resized() {
			if err := s.Barrier(ctx); err != nil {
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

// Commit puts a generation in force that all nodes have. When all have done so, it removes earlier ones. It notes what it
// may not remove, which is no error.
func (s *Session) Commit(ctx context.Context, m *store.Manifest, root string) (notes []string, err error) {
	if err := s.RollForward(ctx, m.Generation, root); err != nil {
		return nil, err
	}
	if err := s.Barrier(ctx); err != nil {
		return nil, err
	}
	return s.Clean(ctx, m.Generation)
}

// Clean removes all but the generation in force, which all nodes have.
func (s *Session) Clean(ctx context.Context, g int64) (notes []string, err error) {
	reasons, err := Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (reason string, _ error) {
		err := n.Clean(g)
		if errors.Is(err, fs.ErrPermission) {
			return err.Error(), nil
		}
		return "", err
	})
	for _, reason := range reasons {
		if reason != "" {
			notes = append(notes, fmt.Sprintf("generation %d is in force, and what was there before could not be removed: %s. The next protect or recover that may removes it", g, reason))
		}
	}
	return printable.Texts(notes), err
}
