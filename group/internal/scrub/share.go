package scrub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sort"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/printable"
)

// A Share is what one run of verify reads of a node. Shares that follow each other read files in the order of their paths,
// and then the parity. A name keeps its place in this order whatever is protected meanwhile, so that they go on after it,
// and what stays is read once a round. A share ends where the round does.
type Share struct {
	parts []part
	reads []bool // of the parts, by their order
	next  *Spot
	Bytes int64 // that it reads
}

// A part of a node is what has a digest: a part of a file, or a block of the parity.
type part struct {
	Spot
	bytes      int64
	number     int // of all file parts, or blocks
	row, chunk int
}

// has reports whether a spot lies in the part.
func (p part) has(x Spot) bool {
	return p.Path == x.Path && p.Parity == x.Parity && p.Offset <= x.Offset && x.Offset < p.Offset+p.bytes
}

// from returns the first of parts that has something at a spot or after it.
func from(parts []part, x Spot) int {
	return sort.Search(len(parts), func(i int) bool { return parts[i].Compare(x) >= 0 || parts[i].has(x) })
}

// partsOf returns all of a node's, in the order of their spots.
func partsOf(m *store.Manifest, x *store.Record) (list []part) {
	files := tree.ExtentsOf(x.Entries)
	for i, g := range m.FilePartsOf(files) {
		e := files[g.File]
		list = append(list, part{Spot{Path: e.Path, Offset: g.At - e.Offset}, g.N, i, g.Row, g.Chunk})
	}
	m.InOrder(m.ParityChunks, func(row, chunk int, at, n int64) error {
		list = append(list, part{Spot{Parity: true, Offset: at}, n, m.Number(row, chunk, m.ParityChunks), row, chunk})
		return nil
	})
	slices.SortFunc(list, func(a, b part) int { return a.Compare(b.Spot) })
	return list
}

// newShare chooses what to read. What was wrong the last time is read again, so that no run calls it right by passing it
// over: as much as the share itself has, at most.
func newShare(parts []part, share float64, was *Note) *Share {
	x := &Share{parts: parts, reads: make([]bool, len(parts))}
	all := int64(0)
	for _, p := range parts {
		all += p.bytes
	}
	most := int64(math.Ceil(share * float64(all)))
	first := 0
	if was.Next != nil {
		first = from(parts, *was.Next)
	}
	if first == len(parts) { // what was left has gone
		first = 0
	}
	end := first
	for ; end < len(parts) && x.Bytes < most; end++ {
		x.reads[end] = true
		x.Bytes += parts[end].bytes
	}
	if end < len(parts) {
		x.next = &Spot{Path: parts[end].Path, Parity: parts[end].Parity, Offset: parts[end].Offset}
	}
	again := int64(0)
	for _, w := range was.Wrong {
		if i := from(parts, w); i < len(parts) && parts[i].has(w) && !x.reads[i] && again < most {
			x.reads[i] = true
			again += parts[i].bytes
		}
	}
	x.Bytes += again
	return x
}

// CompareFiles compares the files of a share with their digests. Of no share it reads nothing.
func (x *Share) CompareFiles(ctx context.Context, s *session.Session, n *store.Node, of *store.Record) (*content.Compared, error) {
	if x == nil {
		return &content.Compared{Files: map[tree.Name]bool{}}, nil
	}
	s.Tell(0, x.Bytes)
	reads := make([]bool, len(x.parts)) // by part of a file
	for i, p := range x.parts {
		if x.reads[i] && !p.Parity {
			reads[p.number] = true
		}
	}
	d := content.NewData(n.Dir, of.Entries, true)
	defer d.Close()
	return content.CompareFileParts(ctx, s.Manifest, d, of, func(i int, _ store.FilePart) bool { return reads[i] }, s.Read)
}

// CompareParity returns the blocks of a share's parity that are damaged, by chunk.
func (x *Share) CompareParity(ctx context.Context, s *session.Session, n *store.Node, of *store.Record) ([][]int, error) {
	if x == nil {
		return nil, nil
	}
	m := s.Manifest
	f := content.ParityOf(n, s.Generation)
	defer f.Close()
	bad := make([][]int, m.ParityChunks)
	buffer := make([]byte, min(m.BlockBytes, m.ChunkBytes))
	for i, p := range x.parts {
		if !p.Parity || !x.reads[i] {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !content.ReadParity(m, f, of, p.row, p.chunk, buffer[:p.bytes]) {
			bad[p.chunk] = append(bad[p.chunk], p.row)
		}
		s.Read(p.bytes)
	}
	return bad, nil
}

// A Scrubbing is what is noted of the reading of the nodes here, and what a run adds to it.
type Scrubbing struct {
	begun  time.Time
	was    []*Note // by node here
	texts  [][]byte
	errs   []error
	Shares []*Share // nil: the run reads everything, or nothing
}

// LoadAll returns what is noted of the nodes here. What is not there, damaged, or another node's is as if nothing was
// noted.
func LoadAll(s *session.Session) *Scrubbing {
	here := len(s.Nodes)
	x := &Scrubbing{begun: time.Now(), was: make([]*Note, here), texts: make([][]byte, here), errs: make([]error, here)}
	s.Here(func(i int, n *store.Node) error {
		if x.was[i], x.texts[i], x.errs[i] = Load(n, s.Manifest); x.errs[i] != nil {
			x.was[i] = new(Note)
		}
		return nil
	})
	return x
}

// Choose chooses the share of each node here that a run reads. The notes say which nodes begin with their first file, as
// nothing is known of earlier shares.
func (x *Scrubbing) Choose(ctx context.Context, s *session.Session, share float64) (notes []string, err error) {
	x.Shares = make([]*Share, len(s.Nodes))
	type news struct {
		First bool
		Why   string
	}
	all, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (news, error) {
		of, st := s.RecordOf[n.Index], s.States[n.Index]
		if of == nil || st.Lost || st.Failing != "" {
			return news{}, nil
		}
		x.Shares[i] = newShare(partsOf(s.Manifest, of), share, x.was[i])
		switch err := x.errs[i]; {
		case errors.Is(err, fs.ErrNotExist):
			return news{First: true}, nil
		case err != nil:
			return news{Why: disk.Reason(err)}, nil
		}
		return news{}, nil
	})
	var first []string
	for n, is := range all {
		switch {
		case is.First:
			first = append(first, s.Name(n))
		case is.Why != "":
			notes = append(notes, fmt.Sprintf("%s: what says how far shares have come cannot be used, so they begin again with the first file: %s", s.Name(n), is.Why))
		}
	}
	if first != nil {
		notes = append(notes, "shares begin with the first file of "+printable.List(first))
	}
	return notes, err
}

// A Reading is what is known of the reading of a node.
type Reading struct {
	Bytes int64   // that this run has read
	Whole *Period // in which all of it was read, the last one; nil: never
	Lacks string  // why it could not be noted
}

// Known returns what was noted of the reading of all nodes.
func (x *Scrubbing) Known(ctx context.Context, s *session.Session, _ []*content.Condition) ([]Reading, error) {
	return session.Collect(ctx, s, func(_ context.Context, i int, _ *store.Node) (Reading, error) {
		return Reading{Whole: x.was[i].Whole}, nil
	})
}

// Note notes at the nodes what this run has read of them, and returns it.
func (x *Scrubbing) Note(ctx context.Context, s *session.Session, conditions []*content.Condition) ([]Reading, error) {
	return session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (r Reading, _ error) {
		was, of, st := x.was[i], s.RecordOf[n.Index], s.States[n.Index]
		r.Whole = was.Whole
		if of == nil || st.Lost || st.Failing != "" || conditions[n.Index].Failing != "" || conditions[n.Index].Foreign {
			return r, nil
		}
		now := time.Now()
		is := &Note{Whole: was.Whole}
		share := (*Share)(nil)
		if x.Shares == nil {
			r.Bytes = of.Bytes + s.Manifest.ParityBytes()
			is.Whole = &Period{From: stamp(x.begun), To: stamp(now)}
		} else {
			share = x.Shares[i]
			r.Bytes, is.Begun, is.Next = share.Bytes, was.Begun, share.next
			if was.Next == nil || was.Begun.IsZero() {
				is.Begun = stamp(x.begun)
			}
			if share.next == nil {
				is.Whole, is.Begun = &Period{From: is.Begun, To: stamp(now)}, time.Time{}
			}
		}
		is.Wrong = wrong(s.Manifest, of, was, conditions[n.Index], share, stamp(now))
		if st.Of(s.Current) == nil || ctx.Err() != nil { // it belongs to another generation, and is to be recovered first
			return r, nil
		}
		if err := save(n, s.Manifest, is, x.texts[i], s.Holder(session.Verb{Name: "verify"})); err != nil {
			r.Lacks = disk.Reason(err)
			return r, nil
		}
		r.Whole = is.Whole
		return r, nil
	})
}

// stamp returns a time as it is noted.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// wrong returns what is not as it was protected, and only reading tells. What was found wrong before, and was not read
// again, stays.
func wrong(m *store.Manifest, of *store.Record, was *Note, c *content.Condition, share *Share, now time.Time) (list []Spot) {
	if len(was.Wrong) == 0 && c.Whole() {
		return nil
	}
	what, before := content.WhatOf(c.Findings), map[tree.Name][]Spot{} // by file; "": of the parity
	for _, w := range was.Wrong {
		before[w.Path] = append(before[w.Path], w)
	}
	for i, p := range partsOf(m, of) {
		rows := c.Data
		if p.Parity {
			rows = c.Parity
		}
		bad := false
		if (p.Parity || what[p.Path] == content.Damaged) && p.chunk < len(rows) {
			_, bad = slices.BinarySearch(rows[p.chunk], p.row)
		}
		since, known := now, false
		for _, w := range before[p.Path] {
			if known = known || p.has(w); p.has(w) && !w.Since.IsZero() && w.Since.Before(since) {
				since = w.Since
			}
		}
		unread := share != nil && !share.reads[i] && known
		if (bad || unread) && len(list) < mostWrong {
			list = append(list, Spot{Path: p.Path, Parity: p.Parity, Offset: p.Offset, Since: since})
		}
	}
	return list
}
