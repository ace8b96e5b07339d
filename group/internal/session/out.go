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

// OpenOut gives nodes that are recovered elsewhere their new directories. One may be there, as far as an earlier run has
// come: the node is then as it is there.
func OpenOut(ctx context.Context, s *Session, to string) (notes []string, err error) {
	at := func(n int) string { return filepath.Join(to, fmt.Sprint("node.", n)) }
	for n := range s.K {
		if s.Out[n] {
			notes = append(notes, fmt.Sprintf("the files of %s go to %s", s.Name(n), at(n)))
		}
	}
	if err := s.Steady(ctx, func(context.Context) error {
		for _, n := range s.Nodes {
			if s.Out[n.Index] {
				n.Close()
				n.At, n.Given, n.Absent, n.Meta = at(n.Index), at(n.Index), "", ""
			}
		}
		return s.Apart()
	}); err != nil {
		return nil, err
	}
	states, err := Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (*store.State, error) {
		was := s.States[n.Index]
		if !s.Out[n.Index] {
			return was, nil
		}
		if err := n.Open(s.Disk, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); err != nil {
			return nil, err
		}
		is := n.Load(s.Key, s.K)
		is.Dir, is.Name, is.Node = was.Dir, was.Name, is.In(s.K)
		h := is.Of(s.Current)
		if is.Lost || is.Interrupted() || h != nil && h.Node == n.Index {
			return is, nil
		}
		l, err := tree.Scan(n.Dir, false, tree.Rules{})
		if err == nil && (len(is.Held) > 0 || !has(s.RecordOf[n.Index], l)) {
			err = store.Inputf("%s has something else than an earlier recovery of this node: name another directory to recover to", n.At)
		}
		return is, err
	})
	if err == nil {
		s.States = states
	}
	return notes, err
}

// has reports whether nothing lies in a directory but what a record has there.
func has(x *store.Record, l *tree.Listing) bool {
	was := tree.ByPath(x.Entries)
	return len(l.Bad) == 0 && !slices.ContainsFunc(l.Entries, func(e *tree.Entry) bool {
		o := was[e.Path]
		file := func(e *tree.Entry) bool { return e.Type == tree.TypeFile || e.Type == tree.TypeLink }
		return o == nil || file(o) != file(e) || !file(o) && o.Type != e.Type || o.Size != e.Size
	})
}
