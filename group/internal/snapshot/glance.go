package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// glance looks for the files of the snapshots that count by their records: by name, length and time. Where more nodes lack
// files than may be lost, a snapshot is incomplete, which the notes say.
func (f *Surroundings) glance(ctx context.Context, s *session.Session) (notes []string, err error) {
	counts := func(x *Snapshot) bool { return x.State == InForce || x.State == Recoverable }
	has, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (has []int64, _ error) {
		for _, x := range f.List {
			at := f.here[i][x.Step]
			if at == nil || !counts(&x) {
				continue
			}
			at.Load(s.Key, s.K)
			whole, err := hasFiles(ctx, at, x.root)
			at.Held, at.Unread = nil, nil
			if err != nil {
				return nil, err
			}
			if whole {
				has = append(has, x.Step)
			}
		}
		return has, nil
	})
	if err != nil {
		return nil, err
	}
	for i := range f.List {
		x := &f.List[i]
		if !counts(x) {
			continue
		}
		var lacking []string
		for n, root := range f.Roots {
			if !slices.Contains(has[n], x.Step) {
				lacking = append(lacking, root.Dir)
			}
		}
		if len(lacking) > x.tolerate {
			x.State, x.Why = Incomplete, fmt.Sprintf("files that were protected are missing or others at %d nodes, and %d may be lost: %s", len(lacking), x.tolerate, strings.Join(lacking, ", "))
			notes = append(notes, fmt.Sprintf("%s does not count: %s", session.StepName(x.Step), x.Why))
		}
	}
	return notes, nil
}

// hasFiles reports whether a node has the files of the generation whose manifest has the root, whatever their names are by
// now. The error is that of a context that has ended.
func hasFiles(ctx context.Context, n *store.Node, root string) (bool, error) {
	for _, l := range n.Held {
		if l.Node < 0 || l.Held(nil).Root != root {
			continue
		}
		_, record, err := n.Read(l, l.Manifest.RecordFilesAt(l.Node)[0])
		if err != nil {
			return false, nil
		}
		x, err := l.Manifest.DecodeRecord(record)
		if err != nil {
			return false, nil
		}
		list, err := tree.Scan(n.Dir, false, l.Manifest.Rules())
		if err != nil {
			return false, nil
		}
		if err := content.FindSources(ctx, l.Manifest, n.Dir, list, x, content.NoFiles); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(x.Entries, func(e *tree.Entry) bool {
			is := list.Find(e.ReadAs())
			return e.Type == tree.TypeFile && (is == nil || is.FileOf() == "" || is.Size != e.Size || !e.Torn && !is.SameTime(e))
		}), nil
	}
	return false, nil
}
