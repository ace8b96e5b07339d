package session

import (
	"io/fs"
	"testing"

	"volley/group/internal/store"
)

// TestEachLocal returns the error of the first node that has one.
func TestEachLocal(t *testing.T) {
	t.Parallel()
	s := &Session{Nodes: make([]*store.Node, 3)}
	for range 1000 {
		if err := s.EachLocal(func(i int, _ *store.Node) error { return []error{nil, fs.ErrExist, fs.ErrClosed}[i] }); err != fs.ErrExist {
			t.Fatalf("the error is %v", err)
		}
	}
}
