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

// BusyNotes returns notes on files that were in use.
func BusyNotes(torn, vanished []string) []string {
	return append(NoteNames("torn, as a program wrote to it each time it was read, so that it may hold old and new content", torn),
		NoteNames("not protected, as it went while it was read", vanished)...)
}

// DoubtNotes returns a note on files of which nobody can tell whether they are as somebody wants them.
func DoubtNotes(doubtful []string) []string {
	return NoteNames("protected with other content under the length and time that they had, as somebody has set the time back, or they have rotted: look whether they are as they should be", doubtful)
}

// NoteNames returns a note with a subject and the first names of a list; none for an empty list.
func NoteNames(subject string, list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", subject, JoinFirst(list[:min(len(list), MostNamed)], ", ", len(list)))}
}

// JoinFirst joins the first names of a list, and says how many more there are.
func JoinFirst(first []string, separator string, total int) string {
	text := strings.Join(first, separator)
	if unnamed := total - len(first); unnamed > 0 {
		text += fmt.Sprintf(" and %d more", unnamed)
	}
	return text
}

// TornFiles returns the files of a record that a program wrote to each time they were read.
func TornFiles(x *store.Record) (list []tree.Name) {
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

// rereadChanged lists the nodes again, and reads and codes the cells of files that have changed or vanished since the
// first listing. If another file has taken a name, the pass has read zeros for it: it lists and reads again, and in the
// end leaves the file out.
func (p *Pass) rereadChanged(ctx context.Context) error {
	for tries := 0; ; tries++ {
		cells, err := p.union(session.Collect(ctx, p.s, func(ctx context.Context, i int, _ *store.Node) ([]stretch, error) {
			cells, err := p.Works[i].cellsToReread(ctx, p.M, tries)
			return stretches(cells), err
		}))
		if err != nil || len(cells) == 0 {
			return err
		}
		p.Reread = slices.Sorted(slices.Values(slices.Concat(p.Reread, cells)))
		for _, n := range p.Works {
			n.dropVanished(p.M)
		}
		if err := p.readAndCode(ctx, cells); err != nil {
			return err
		}
	}
}

// mostTries is how often a file is read again in whose place another one has come.
const mostTries = 3

// cellsToReread returns the cells to read again after so many tries.
func (n *Work) cellsToReread(ctx context.Context, m *store.Manifest, tries int) (cells []int, err error) {
	vanished := n.Data.Vanished
	switch {
	case tries == 0:
		return n.Rescan(ctx, m, nil, nil)
	case len(vanished) == 0:
		return nil, nil
	case tries <= mostTries:
		return n.Rescan(ctx, m, nil, vanished)
	}
	for _, g := range n.Sums.List {
		if vanished[n.Sums.Files[g.File].Path] {
			cells = append(cells, n.cell(m, g))
		}
	}
	n.vanished = append(n.vanished, slices.Collect(maps.Keys(vanished))...)
	return cells, nil
}

// Rescan lists the node again, and updates metadata in the record. A changed file that still begins with what was read
// stays in the record as it was read. Else Rescan returns its cells, to be read again; a vanished file leaves the record.
// After cells were reread, files that changed meanwhile are torn. It looks at the chosen files, or at all if chosen is nil.
func (n *Work) Rescan(ctx context.Context, m *store.Manifest, reread []int, chosen map[tree.Name]bool) (again []int, err error) {
	current, err := n.Listing.Again(n.Dir)
	if err != nil {
		return nil, err
	}
	emptied := map[tree.Name]bool{}  // directories out of which something has gone: the time that they had tells so
	cells := map[*tree.Entry][]int{} // of what was touched, or is chosen
	for e, found := range tree.Pairs(n.Listing.Entries, current.Entries) {
		if e == nil || e == found && !chosen[e.Path] {
			continue
		}
		cells[e] = nil
		for p := e.Path; p != "." && current.Find(p) == nil; p = content.Parent(p) {
			emptied[content.Parent(p)] = true
		}
	}
	read, replaced := map[*tree.Entry]bool{}, map[tree.Name]bool{}
	for _, g := range n.Sums.List {
		e := n.Sums.Files[g.File]
		if _, touched := cells[e]; touched {
			cells[e] = append(cells[e], n.cell(m, g))
			read[e] = read[e] || includes(reread, n.cell(m, g))
		}
	}
	for e, found := range tree.Pairs(n.Listing.Entries, current.Entries) {
		if _, touched := cells[e]; !touched || chosen != nil && !chosen[e.Path] {
			continue
		}
		if found == nil && current.Unreadable(e.Path) != nil {
			return nil, current.Unreadable(e.Path)
		}
		if cells[e] == nil {
			if found != nil && found.Type == e.Type && found.Size == e.Size && !emptied[e.Path] {
				e.TakeMeta(found)
			}
			continue
		}
		if reread != nil && !read[e] || found != nil && found.Touch == e.Touch && !chosen[e.Path] {
			continue
		}
		if found == nil || found.FileOf() == "" { // the file has vanished
			if e.Torn = reread != nil; !e.Torn {
				again = append(again, cells[e]...)
				n.vanished = append(n.vanished, e.Path)
			}
			continue
		}
		holds, sameFile := false, found.Touch.SameFile(e.Touch)
		n.Dir.WriteBack(string(e.Path), true) // what is read next is what later times tell apart
		if sameFile && found.Size >= e.Size {
			holds, err = content.HoldsFile(ctx, m, n.Dir, e.Path, &store.Record{FileDigests: n.Sums.Digests}, n.Sums.List, e)
			if ctx.Err() != nil {
				return nil, err
			}
		}
		if !holds {
			again = append(again, cells[e]...)
			if e.Torn = reread != nil; e.Torn && !sameFile {
				continue // the record would get the owner and mode of another file
			}
			if !e.Torn {
				e.Size, replaced[e.Path] = min(e.Size, found.Size), !sameFile
			}
		}
		e.TakeMeta(found)
	}
	for _, e := range n.Listing.Entries { // links to the old file do not lead to the new one
		if e.Type == tree.TypeLink && replaced[e.Target] && !current.Linked(e.Path, e.Target) {
			n.vanished = append(n.vanished, e.Path)
		}
	}
	return again, nil
}

// dropVanished removes vanished files from the record, notes them, and cuts shorter files into their parts.
func (n *Work) dropVanished(m *store.Manifest) {
	vanished := map[tree.Name]bool{}
	for _, name := range n.vanished {
		vanished[name] = true
	}
	n.vanished = nil
	n.Listing.Entries = slices.DeleteFunc(n.Listing.Entries, func(e *tree.Entry) bool {
		dropped := vanished[e.Path] || vanished[e.FileOf()]
		if dropped {
			n.dropped = append(n.dropped, e.Path)
		}
		return dropped
	})
	n.Record.Entries = n.Listing.Entries
	n.Data.Close()
	n.Data = content.NewData(n.Dir, n.Listing.Entries, false)
	previous := n.Sums
	n.Sums = content.NewSums(m, n.Data.Extents)
	j := 0
	for i, g := range n.Sums.List {
		for previous.List[j].Offset < g.Offset {
			j++
		}
		copy(m.DigestOf(n.Sums.Digests, i), m.DigestOf(previous.Digests, j))
	}
}

// changedSinceListed reports whether a file has changed since it was listed: then other content is no rot.
func (n *Work) changedSinceListed(e *tree.Entry) bool {
	info, err := n.Dir.Lstat(string(e.Path))
	return err != nil || tree.TouchOf(info) != e.Touch || info.Size() != e.Size // a file that is cut has another length first
}
