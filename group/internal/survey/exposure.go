package survey

import (
	"context"
	"slices"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// MostRisks is how many names a risk has.
const MostRisks = 10_000

// Expose returns how many more nodes may be lost, whichever they are, so that everything of theirs comes back, and what
// would not where one more is, and since when: nil where that is not known. It counts by codeword: what is lost, damaged or
// changed is an erasure in its own.
func Expose(ctx context.Context, s *session.Session, conditions []*content.Condition) (mayLose int, risks []protection.Risk, since *protection.Cause, err error) {
	m := s.Manifest
	c, err := erasure.CodeOf(m)
	if err != nil {
		return 0, nil, nil, err
	}
	word := map[content.Symbol]int{}
	for i, w := range c.Words {
		for _, x := range slices.Concat(w.Data, w.Parity) {
			word[x] = i
		}
	}
	bad := []int(nil) // by row and codeword; nil: nothing is
	limit := m.Tolerate
	for n, x := range conditions {
		if x.Lost || x.Failing != "" || x.Foreign {
			limit--
		}
		for _, of := range []struct {
			content.Symbol
			chunks [][]int
		}{{content.Symbol{Node: n}, x.Data}, {content.Symbol{Node: n, Parity: true}, x.Parity}} {
			for chunk, rows := range of.chunks {
				of.Index = chunk
				w := word[of.Symbol]
				if bad == nil && len(rows) > 0 {
					bad = make([]int, m.Rows()*len(c.Words))
				}
				for _, row := range rows {
					bad[row*len(c.Words)+w]++
				}
			}
		}
	}
	for _, has := range holders(s) {
		limit = min(limit, has-1)
	}
	mayLose = limit
	if bad != nil {
		mayLose = min(limit, m.Tolerate-slices.Max(bad))
	}
	mayLose = max(0, mayLose)
	if mayLose >= limit {
		return mayLose, nil, nil, nil
	}
	short := func(row int) bool { // of what brings its blocks back
		return slices.ContainsFunc(bad[row*len(c.Words):][:len(c.Words)], func(n int) bool { return n > 0 && m.Tolerate-n <= mayLose })
	}
	type both struct {
		protection.Risk
		Cause *protection.Cause
	}
	all, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (r both, _ error) {
		x, is := s.RecordOf[n.Index], conditions[n.Index]
		r.Risk = protection.Risk{Node: n.Index, Dir: n.DirName}
		if x == nil || is.Lost || is.Failing != "" {
			return r, nil
		}
		r.Cause = causeAt(s, n, x, is, short)
		files := tree.ExtentsOf(x.Entries)
		gone := map[int]bool{}
		for _, g := range m.FilePartsOf(files) {
			w := word[content.Symbol{Node: n.Index, Index: g.Chunk}]
			others := bad[g.Row*len(c.Words)+w]
			if g.Chunk < len(is.Data) {
				if _, own := slices.BinarySearch(is.Data[g.Chunk], g.Row); own {
					others--
				}
			}
			if m.Tolerate-others <= mayLose {
				gone[g.File] = true
			}
		}
		for i, e := range files {
			if !gone[i] {
				continue
			}
			if r.Files++; r.Files <= MostRisks {
				r.Names = append(r.Names, e.Path)
			}
			r.Bytes += e.Size
		}
		slices.Sort(r.Names)
		return r, nil
	})
	for _, x := range all {
		if x.Files > 0 {
			risks = append(risks, x.Risk)
		}
		if x.Cause != nil && (since == nil || x.Cause.Time.Before(since.Time)) {
			since = x.Cause
		}
	}
	return mayLose, risks, since, err
}

// causeAt returns what was first, of a node here, to take from the protection in some rows: the oldest of the files that
// were changed, and of the directories that files were deleted from. Nothing is older than the protection that it takes
// from, whatever its time says.
func causeAt(s *session.Session, n *store.Node, x *store.Record, is *content.Condition, in func(row int) bool) (first *protection.Cause) {
	m := s.Manifest
	files := tree.ExtentsOf(x.Entries)
	touches := map[tree.Name]bool{}
	for _, g := range m.FilePartsOf(files) {
		if !touches[files[g.File].Path] && in(g.Row) {
			touches[files[g.File].Path] = true
		}
	}
	made := time.Time{}
	for _, st := range s.States {
		if h := st.Holding(s.Current); h != nil && (made.IsZero() || h.Since.Before(made)) {
			made = h.Since
		}
	}
	add := func(at time.Time, what string) {
		if at.Before(made) {
			at = made
		}
		if first == nil || at.Before(first.Time) {
			first = &protection.Cause{Time: at, Node: n.Index, Dir: n.DirName, Kind: what}
		}
	}
	what := content.WhatOf(is.Findings)
	for _, e := range x.Entries {
		if !touches[e.FileOf()] {
			continue
		}
		switch what[e.Path] {
		case content.Changed:
			if now := is.Listing.Find(e.Path); now != nil {
				add(now.Time(), content.Changed)
			}
		case content.Deleted:
			for up := content.Above(e.Path); ; up = content.Above(up) {
				if now := is.Listing.Find(up); now != nil {
					add(now.Time(), content.Deleted)
					break
				}
				if up == "." {
					break
				}
			}
		}
	}
	return first
}

// holders returns, by record, how many nodes have it.
func holders(s *session.Session) []int {
	list := make([]int, s.K)
	for n, files := range s.Manifest.RecordFiles() {
		h := s.States[n].Holding(s.Current)
		for i, f := range files {
			if h != nil && h.Node == n && slices.Contains(h.Records, i) {
				list[f.Owner]++
			}
		}
	}
	return list
}
