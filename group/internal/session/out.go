package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// OpenOut gives nodes that are recovered elsewhere their new directories. An earlier run may have left such a directory: the
// node then has what lies there.
func OpenOut(ctx context.Context, s *Session, parent string) (notes []string, err error) {
	dirOf := func(n int) string { return filepath.Join(parent, fmt.Sprint("node.", n)) }
	for n := range s.K {
		if s.Redirected[n] {
			notes = append(notes, fmt.Sprintf("the files of %s go to %s", s.Name(n), dirOf(n)))
		}
	}
	if err := s.Steady(ctx, func(context.Context) error {
		for _, n := range s.Nodes {
			if s.Redirected[n.Index] {
				n.Close()
				n.DirPath, n.DirName, n.Absent, n.Meta = dirOf(n.Index), dirOf(n.Index), "", ""
			}
		}
		return s.Apart()
	}); err != nil {
		return nil, err
	}
	states, err := Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (*store.State, error) {
		earlier := s.States[n.Index]
		if !s.Redirected[n.Index] {
			return earlier, nil
		}
		if err := n.Open(s.Disk, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); err != nil {
			return nil, err
		}
		state := n.Load(s.Key, s.K)
		state.Dir, state.Name, state.Node = earlier.Dir, earlier.Name, state.NumberAmong(s.K)
		h := state.Holding(s.Current)
		if state.Lost || state.Interrupted() || h != nil && h.Node == n.Index {
			return state, nil
		}
		l, err := tree.Scan(n.Dir, false, tree.Rules{})
		if err == nil && (len(state.Held) > 0 || !hasOnly(s.RecordOf[n.Index], l)) {
			err = store.Inputf("%s has something else than an earlier recovery of this node: name another directory to recover to", n.DirPath)
		}
		return state, err
	})
	if err == nil {
		s.States, s.Tidies = states, true
	}
	return notes, err
}

// hasOnly reports whether nothing lies in a directory but what a record has there.
func hasOnly(x *store.Record, l *tree.Listing) bool {
	recorded := tree.ByPath(x.Entries)
	return len(l.Bad) == 0 && !slices.ContainsFunc(l.Entries, func(e *tree.Entry) bool {
		o := recorded[e.Path]
		file := func(e *tree.Entry) bool { return e.Type == tree.TypeFile || e.Type == tree.TypeLink }
		return o == nil || file(o) != file(e) || !file(o) && o.Type != e.Type || o.Size != e.Size
	})
}
