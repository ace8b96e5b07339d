package pass

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// MostNamed is how many files of a node a message names.
const MostNamed = 5

// BusyNotes says what was the matter with files that were in use.
func BusyNotes(torn, gone []string) []string {
	return append(Named("torn, as a program wrote to it each time it was read, so that it may hold old and new content", torn),
		Named("not protected, as it went while it was read", gone)...)
}

// Named returns a note that says what holds for a list, and names the first ones; none for an empty list.
func Named(what string, list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", what, AndMore(list[:min(len(list), MostNamed)], ", ", len(list)))}
}

// AndMore joins the first of a list, and says how many more there are.
func AndMore(first []string, by string, all int) string {
	text := strings.Join(first, by)
	if more := all - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Torn returns the files of a record that were written to each time they were read.
func Torn(x *store.Record) (list []tree.Name) {
	for _, e := range x.Entries {
		if e.Torn {
			list = append(list, e.Path)
		}
	}
	return list
}

// NoteTorn returns a note that names the files which are torn.
func NoteTorn(s *session.Session, conditions []*content.Condition) []string {
	var torn []string
	for n, c := range conditions {
		for _, p := range c.Torn {
			torn = append(torn, tree.JoinPath(s.States[n].Dir, p))
		}
	}
	return BusyNotes(torn, nil)
}

// again looks at the nodes once more, and reads and codes the rows again of files that have changed or gone since they were
// listed. Where another file has come in the place of one that was to be read, zeros were: it looks and reads once more,
// and in the end goes on without it.
func (p *Pass) again(ctx context.Context) error {
	for tries := 0; ; tries++ {
		rows, err := p.union(session.Collect(ctx, p.s, func(ctx context.Context, i int, _ *store.Node) ([]stretch, error) {
			rows, err := p.Works[i].toRead(ctx, p.M, tries)
			return stretches(rows), err
		}))
		if err != nil || len(rows) == 0 {
			return err
		}
		p.Reread = slices.Sorted(slices.Values(slices.Concat(p.Reread, rows)))
		for _, n := range p.Works {
			n.relay(p.M)
		}
		if err := p.readAndCode(ctx, rows); err != nil {
			return err
		}
	}
}

// mostTries is how often a file is read again in whose place another one has come.
const mostTries = 3

// toRead returns the rows to read again, after they were read again so often.
func (n *Work) toRead(ctx context.Context, m *store.Manifest, tries int) (rows []int, err error) {
	gone := n.Data.Gone
	switch {
	case tries == 0:
		return n.look(ctx, m, nil, nil)
	case len(gone) == 0:
		return nil, nil
	case tries <= mostTries:
		return n.look(ctx, m, nil, gone)
	}
	for _, g := range n.Sums.List {
		if gone[n.Sums.Files[g.File].Path] {
			rows = append(rows, g.Row)
		}
	}
	n.left = append(n.left, slices.Collect(maps.Keys(gone))...)
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// Look lists the node once more, and gives the record the metadata of what is there still. A file that has changed stays in
// the record as it was read, if it still begins with that. Else its rows are to be read again, and are returned: without
// it, if it has gone. After rows were read again, what has changed in them since is torn.
func (n *Work) Look(ctx context.Context, m *store.Manifest, reread []int) (again []int, err error) {
	return n.look(ctx, m, reread, nil)
}

// look is Look. Only, unless nil, are the files to look at.
func (n *Work) look(ctx context.Context, m *store.Manifest, reread []int, only map[tree.Name]bool) (again []int, err error) {
	l, err := tree.Scan(n.Dir, false, n.Listing.Rules)
	if err != nil {
		return nil, err
	}
	rows, read, replaced := map[*tree.Entry][]int{}, map[*tree.Entry]bool{}, map[tree.Name]bool{}
	for _, g := range n.Sums.List {
		e := n.Sums.Files[g.File]
		rows[e] = append(rows[e], g.Row)
		if _, is := slices.BinarySearch(reread, g.Row); is {
			read[e] = true
		}
	}
	for _, e := range n.Listing.Entries {
		is := l.Find(e.Path)
		if only != nil && !only[e.Path] {
			continue
		}
		if is == nil && l.Unreadable(e.Path) != nil {
			return nil, l.Unreadable(e.Path)
		}
		if rows[e] == nil {
			if is != nil && is.Type == e.Type && is.Size == e.Size {
				e.TakeMeta(is)
			}
			continue
		}
		if reread != nil && !read[e] || is != nil && is.Touch == e.Touch && !only[e.Path] {
			continue
		}
		if is == nil || is.FileOf() == "" { // it has gone
			if e.Torn = reread != nil; !e.Torn {
				again = append(again, rows[e]...)
				n.left = append(n.left, e.Path)
			}
			continue
		}
		holds, same := false, is.Touch.SameFile(e.Touch)
		if same && is.Size >= e.Size {
			holds, err = content.HoldsFile(ctx, m, n.Dir, e.Path, &store.Record{FileDigests: n.Sums.Digests}, n.Sums.List, e)
			if ctx.Err() != nil {
				return nil, err
			}
		}
		if !holds {
			again = append(again, rows[e]...)
			if e.Torn = reread != nil; e.Torn && !same {
				continue // it would get another file's owner and mode
			}
			if !e.Torn {
				e.Size, replaced[e.Path] = min(e.Size, is.Size), !same
			}
		}
		e.TakeMeta(is)
		e.Touch = is.Touch
	}
	for _, e := range n.Listing.Entries { // names that are not the new file's
		if e.Type == tree.TypeLink && replaced[e.Target] && !l.Linked(e.Path, e.Target) {
			n.left = append(n.left, e.Path)
		}
	}
	slices.Sort(again)
	return slices.Compact(again), nil
}

// relay takes what has gone out of the record, and notes it, and gives the files that have become shorter their parts.
func (n *Work) relay(m *store.Manifest) {
	left := map[tree.Name]bool{}
	for _, name := range n.left {
		left[name] = true
	}
	n.left = nil
	n.Listing.Entries = slices.DeleteFunc(n.Listing.Entries, func(e *tree.Entry) bool {
		gone := left[e.Path] || left[e.FileOf()]
		if gone {
			n.gone = append(n.gone, e.Path)
		}
		return gone
	})
	n.Record.Entries = n.Listing.Entries
	n.Data.Close()
	n.Data = content.NewData(n.Dir, n.Listing.Entries, false)
	was := n.Sums
	n.Sums = content.NewSums(m, n.Data.Extents)
	j := 0
	for i, g := range n.Sums.List {
		for was.List[j].Offset < g.Offset {
			j++
		}
		copy(m.DigestOf(n.Sums.Digests, i), m.DigestOf(was.Digests, j))
	}
	if n.earlier != nil {
		n.earlier.next = 0
	}
}

// meanwhile reports whether a file is not as it was listed: what it holds is not rot.
func (n *Work) meanwhile(e *tree.Entry) bool {
	info, err := n.Dir.Lstat(string(e.Path))
	return err != nil || tree.TouchOf(info) != e.Touch
}
