// Package scrub cuts nodes into parts that verify reads one at a time, and notes when each part was read.
package scrub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/zeebo/xxh3"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// MostParts is how many parts a node has at most: each leaves an empty file in .volley.
const MostParts = 1000

// A Part is one, counted from 1, of so many Parts of each node. The zero Part is nothing.
type Part struct{ Part, Parts int }

// EntireNode is the part that is all of a node.
var EntireNode = Part{1, 1}

// Valid reports whether there is such a part.
func (p Part) Valid() bool { return 1 <= p.Part && p.Part <= p.Parts && p.Parts <= MostParts }

// contains chooses blocks by a hash: a block stays in its part whatever is protected later.
func (p Part) contains(file tree.Name, block int64) bool {
	return p.Parts > 0 && xxh3.HashStringSeed(string(file), uint64(block))%uint64(p.Parts) == uint64(p.Part-1)
}

// HasFile reports whether a part of a file is in p.
func (p Part) HasFile(m *store.Manifest, e *tree.Entry, g store.FilePart) bool {
	return p.contains(e.Path, (g.Offset-e.Offset)/m.BlockBytes)
}

// HasParity reports whether a block of the parity is in p: that of no path.
func (p Part) HasParity(m *store.Manifest, row, chunk int) bool {
	return p.contains("", int64(m.Number(row, chunk, m.ParityChunks)))
}

// Bytes returns how many bytes of a node are in p.
func (p Part) Bytes(m *store.Manifest, x *store.Record) (bytes int64) {
	if p == EntireNode {
		return x.Bytes + m.ParityBytes()
	}
	files := tree.ExtentsOf(x.Entries)
	for _, g := range m.FilePartsOf(files) {
		if p.HasFile(m, files[g.File], g) {
			bytes += g.N
		}
	}
	m.InOrder(m.ParityChunks, func(row, chunk int, _, n int64) error {
		if p.HasParity(m, row, chunk) {
			bytes += n
		}
		return nil
	})
	return bytes
}

// A ReadState says what was read of a node.
type ReadState struct {
	Bytes int64               // that this run has read
	Last  *protection.Reading // nil: some of it was never read
}

// Note notes at the nodes here, where it can, that a run begun then has read a part of them. It returns what is known of
// all nodes.
func Note(ctx context.Context, s *session.Session, p Part, begun time.Time, conditions []*content.Condition) ([]ReadState, error) {
	return session.Collect(ctx, s, func(ctx context.Context, _ int, n *store.Node) (x ReadState, _ error) {
		record, c := s.RecordOf[n.Index], conditions[n.Index]
		if p.Parts > 0 && record != nil && !c.Lost && c.Failing == "" && !c.Foreign {
			x.Bytes = p.Bytes(s.Manifest, record)
			if s.States[n.Index].Holding(s.Current) != nil && ctx.Err() == nil { // only of the current generation
				if err := note(n, p, begun); err != nil {
					s.Log.DebugContext(ctx, "not noted that it was read", "node", n.DirName, "error", err)
				}
			}
		}
		x.Last = latestReading(n)
		return x, nil
	})
}

// name returns the name of the file whose time says when the part was read. Such a file is never in part written, needs
// no lock, and may be lost: the part counts as never read until it is read again.
func (p Part) name() string { return fmt.Sprintf("%d-%d", p.Part, p.Parts) }

// note notes that a part was read.
func note(n *store.Node, p Part, begun time.Time) error {
	if n.Unlock == nil {
		return errors.New("it could not be locked")
	}
	dir := store.MetaPath(store.ScrubName)
	if err := n.Dir.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	name := path.Join(dir, p.name())
	f, err := n.Dir.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return cmp.Or(f.Close(), n.Dir.SetTime(name, begun.Truncate(time.Second)))
}

// latestReading returns the latest reading of a node. Numbers of parts may differ between readings.
func latestReading(n *store.Node) (latest *protection.Reading) {
	if n.Dir == nil {
		return nil
	}
	entries, _ := n.Dir.ReadDir(store.MetaPath(store.ScrubName)) // unreadable notes count as missing
	oldest, read := map[int]*protection.Reading{}, map[int]int{} // by the number of parts
	for _, e := range entries {
		p := Part{}
		fmt.Sscanf(e.Name(), "%d-%d", &p.Part, &p.Parts)
		info, err := e.Info()
		if !p.Valid() || p.name() != e.Name() || err != nil {
			continue
		}
		read[p.Parts]++
		if x := oldest[p.Parts]; x == nil || info.ModTime().Before(x.Since) {
			oldest[p.Parts] = &protection.Reading{Since: info.ModTime().UTC(), Part: p.Part, Parts: p.Parts}
		}
	}
	for parts, x := range oldest {
		if read[parts] == parts && (latest == nil || x.Since.After(latest.Since)) {
			latest = x
		}
	}
	return latest
}
