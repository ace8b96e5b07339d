package group

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// What is the matter with a file of a node, or the whole of it.
const (
	Whole    = "whole"
	Lost     = "lost"    // a node whose directory is gone or empty
	Missing  = "missing" // a file
	Damaged  = "damaged" // it is as long as it was and holds something else
	Changed  = "changed" // it has another length, and was written to since
	New      = "new"     // it was not there
	Metadata = "mode or time"
)

// A Finding is what is the matter with a file, or with something of Volley's.
type Finding struct {
	Path Name   `json:"path"`
	What string `json:"what"`
}

// A condition is what is found of a node when all of it is compared with the manifest.
type condition struct {
	Lost     bool
	Findings []Finding
	Data     [][]int // by chunk: the blocks that are not as they were
	Parity   [][]int
	Touched  [][]int // by chunk: blocks that are to come back; not those of changed files
	Manifest bool    // is there, and right

	// Of nodes here alone:
	restore []int // entries that are to come back
	parity  bool  // is to be written anew
}

// whole reports whether nothing is the matter that takes anything from the protection.
func (c *condition) whole() bool {
	return !c.Lost && c.Manifest && !slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.What != New && f.What != Metadata })
}

// status returns what is the matter with the node as a whole.
func (c *condition) status() string {
	switch {
	case c.Lost:
		return Lost
	case c.whole():
		return Whole
	case !c.Manifest || slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.What == Damaged || f.What == Missing }):
		return Damaged
	}
	return Changed
}

// examine compares a node with the manifest. Quickly is without reading files. Changed
// files are to come back too if revert is set.
func (s *session) examine(ctx context.Context, n *node, quickly, revert bool) (*condition, error) {
	m := s.manifest
	x := &m.Members[n.index]
	c := &condition{Lost: s.states[n.index].Lost}
	for _, found := range s.states[n.index].Manifests {
		c.Manifest = c.Manifest || found.Generation == s.generation && found.SHA256 == sum(s.text)
	}
	if !c.Lost && s.states[n.index].Node < 0 {
		c.Findings = append(c.Findings, Finding{metaName + "/" + nodeFile, Damaged})
	}
	if !c.Lost && !c.Manifest {
		c.Findings = append(c.Findings, Finding{metaName + "/manifest", Damaged})
	}
	changed, err := s.compareEntries(n, x, c)
	if err != nil {
		return nil, err
	}
	if quickly {
		if info, err := os.Stat(n.parity(s.generation)); !c.Lost && (err != nil || info.Size() != int64(m.ParityChunks)*m.ChunkBytes) {
			c.Findings = append(c.Findings, Finding{metaName + "/" + parityName, Damaged})
		}
		return c, nil
	}
	// Of the data, what is there.
	d := newData(n.root, x.Entries, true)
	defer d.close()
	var now Member
	now.Entries = slices.Clone(x.Entries)
	if err := m.digest(ctx, d, &now); err != nil {
		return nil, err
	}
	c.Data, c.Touched = bad(m, m.DataChunks, x.Data, now.Data), make([][]int, m.DataChunks)
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Type != typeFile {
			continue
		}
		what, known := changed[e.Path]
		if !known && now.Entries[i].SHA256 == e.SHA256 {
			continue
		}
		if !known {
			what = Damaged
			c.Findings = append(c.Findings, Finding{e.Path, Damaged})
		}
		if what != Changed || revert {
			c.restore = append(c.restore, i)
		}
	}
	for i := range x.Entries { // what is no file
		if e := &x.Entries[i]; e.Type != typeFile && (changed[e.Path] == Missing || changed[e.Path] == Changed && revert) {
			c.restore = append(c.restore, i)
		}
	}
	var restored []Entry
	for _, i := range c.restore {
		restored = append(restored, x.Entries[i])
	}
	touched := extentsOf(restored)
	for chunk, rows := range c.Data {
		for _, row := range rows {
			at, length := m.block(row)
			if touched.any(int64(chunk)*m.ChunkBytes+at, length) {
				c.Touched[chunk] = append(c.Touched[chunk], row)
			}
		}
	}
	f, err := n.openParity(s.generation)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Parity, c.parity = all(m, m.ParityChunks), true
		if !c.Lost {
			c.Findings = append(c.Findings, Finding{metaName + "/" + parityName, Missing})
		}
		return c, nil
	case err != nil:
		return nil, err
	}
	defer f.Close()
	list, err := m.digests(ctx, f, m.ParityChunks, nil)
	if err != nil {
		return nil, err
	}
	c.Parity = bad(m, m.ParityChunks, x.Parity, list)
	c.parity = f.size != int64(m.ParityChunks)*m.ChunkBytes || slices.ContainsFunc(c.Parity, func(rows []int) bool { return len(rows) > 0 })
	if c.parity {
		c.Findings = append(c.Findings, Finding{metaName + "/" + parityName, Damaged})
	}
	return c, nil
}

// badParity returns, by chunk, the blocks of a node's parity that are not right, or cannot be
// read.
func (s *session) badParity(ctx context.Context, n *node) [][]int {
	m := s.manifest
	f, err := n.openParity(s.generation)
	if err != nil {
		return all(m, m.ParityChunks)
	}
	defer f.Close()
	list, err := m.digests(ctx, f, m.ParityChunks, nil)
	if err != nil {
		return all(m, m.ParityChunks)
	}
	return bad(m, m.ParityChunks, m.Members[n.index].Parity, list)
}

// A paddedFile reads zeros where it has ended.
type paddedFile struct {
	*os.File
	size int64
}

// openParity opens the parity of a generation.
func (n *node) openParity(g int64) (*paddedFile, error) {
	f, err := os.Open(n.parity(g))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &paddedFile{f, info.Size()}, nil
}

// ReadAt reads at any offset.
func (f *paddedFile) ReadAt(p []byte, offset int64) (int, error) {
	there := max(0, min(int64(len(p)), f.size-offset))
	if n, err := f.File.ReadAt(p[:there], offset); int64(n) < there {
		return n, err
	}
	clear(p[there:])
	return len(p), nil
}

// all returns, by chunk, all blocks.
func all(m *Manifest, chunks int) [][]int {
	list := make([][]int, chunks)
	for c := range list {
		for row := range m.rows() {
			list[c] = append(list[c], row)
		}
	}
	return list
}

// bad returns, by chunk, the blocks whose digests differ.
func bad(m *Manifest, chunks int, want, got []string) [][]int {
	list := make([][]int, chunks)
	for c := range chunks {
		for row := range m.rows() {
			if i := c*m.rows() + row; want[i] != got[i] {
				list[c] = append(list[c], row)
			}
		}
	}
	return list
}

// compareEntries adds what can be seen without reading files. It returns the entries with
// which something is the matter.
func (s *session) compareEntries(n *node, x *Member, c *condition) (map[Name]string, error) {
	what := map[Name]string{}
	there := map[Name]Entry{}
	if !c.Lost {
		list, err := scan(n.root, false)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			there[e.Path] = e
		}
	}
	note := func(p Name, w string) {
		what[p] = w
		if !c.Lost {
			c.Findings = append(c.Findings, Finding{p, w})
		}
	}
	for _, e := range x.Entries {
		now, ok := there[e.Path]
		delete(there, e.Path)
		switch {
		case !ok:
			note(e.Path, Missing)
		case now.Type != e.Type || now.Target != e.Target:
			note(e.Path, Changed)
		case now.Type == typeFile && now.Size != e.Size && now.MTime != e.MTime:
			note(e.Path, Changed)
		case now.Type == typeFile && now.Size != e.Size:
			note(e.Path, Damaged)
		case now.Type == typeFile && (now.Mode != e.Mode || now.MTime != e.MTime):
			if !c.Lost {
				c.Findings = append(c.Findings, Finding{e.Path, Metadata})
			}
		}
	}
	for p := range there {
		note(p, New)
	}
	slices.SortStableFunc(c.Findings, func(a, b Finding) int {
		switch {
		case a.Path < b.Path:
			return -1
		case a.Path > b.Path:
			return 1
		}
		return 0
	})
	return what, nil
}
