package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"volley/group/internal/tree"
	"volley/internal/disk"
)

// ChangesFile says which parity blocks lie elsewhere than in ParityFile, the base: in files with the blocks that one
// generation has changed. Without it the base has all.
const ChangesFile = "changes"

// changesName returns the name of a file with the blocks that a generation has changed.
func changesName(g int64) string { return fmt.Sprint(ChangesFile, ".", g) }

// Changes say where the parity blocks of a node lie.
type Changes struct {
	Format string          `json:"format"`
	Base   int64           `json:"base"`  // bytes of the base
	Files  []ChangedBlocks `json:"files"` // earlier ones first
}

// ChangedBlocks is a file with parity blocks. Each begins at a multiple of the bytes that blocks have.
type ChangedBlocks struct {
	Generation int64    `json:"generation"`
	Bytes      int64    `json:"bytes"`
	Blocks     [][3]int `json:"blocks"` // ascending: number of the first, number behind the last, position of the first
}

const (
	mostFiles   = 64      // of a generation
	mostChanged = 1 << 17 // blocks of all these files
	mostText    = 8 << 20 // bytes of ChangesFile
)

// position returns where in the file a block is, or -1.
func (c *ChangedBlocks) position(number int) int {
	i := sort.Search(len(c.Blocks), func(i int) bool { return c.Blocks[i][1] > number })
	if i == len(c.Blocks) || c.Blocks[i][0] > number {
		return -1
	}
	return c.Blocks[i][2] + number - c.Blocks[i][0]
}

// DecodeChanges reads what ChangesFile holds, in a generation with blocks of so many bytes.
func DecodeChanges(data []byte, blockBytes int64) (*Changes, error) {
	text, err := disk.Unseal(data)
	if err != nil {
		return nil, err
	}
	x := new(Changes)
	if err := json.Unmarshal(text, x); err != nil {
		return nil, err
	}
	if x.Format != Format || x.Base < 0 || len(x.Files) > mostFiles {
		return nil, fmt.Errorf("format: %q, base: %d, files: %d: want %q, and %d files at most", x.Format, x.Base, len(x.Files), Format, mostFiles)
	}
	last := int64(0)
	for _, c := range x.Files {
		if c.Generation <= last || c.Bytes < 0 || c.Bytes > MostChunk {
			return nil, fmt.Errorf("files: %d bytes of generation %d, after generation %d", c.Bytes, c.Generation, last)
		}
		last = c.Generation
		end, positions := 0, int(c.Bytes/blockBytes)
		for _, b := range c.Blocks {
			if b[0] < end || b[1] <= b[0] || b[2] < 0 || b[2] > positions-(b[1]-b[0]) {
				return nil, fmt.Errorf("blocks: %v after block %d: want the first, the one behind the last, and one of %d positions", b, end, positions)
			}
			end = b[1]
		}
	}
	return x, nil
}

// changed returns the latest file of changes that has a block, and the position of the block; 0: the base has it.
func (x *Changes) changed(number int) (g int64, position int) {
	for _, c := range slices.Backward(x.Files) {
		if position := c.position(number); position >= 0 {
			return c.Generation, position
		}
	}
	return 0, 0
}

// Place returns the file that has a byte of the parity, and where.
func (x *Changes) Place(m *Manifest, offset int64) (name string, place int64) {
	if offset < m.ParityBytes() {
		row, chunk, _ := m.BlockAt(offset, m.ParityChunks)
		if g, position := x.changed(m.Number(row, chunk, m.ParityChunks)); g > 0 {
			return changesName(g), int64(position)*m.BlockBytes + offset - m.OffsetOf(row, chunk, m.ParityChunks)
		}
	}
	return ParityFile, offset
}

// files returns the names of the files of the parity, the base first.
func (x *Changes) files() []string {
	list := []string{ParityFile}
	for _, c := range x.Files {
		list = append(list, changesName(c.Generation))
	}
	return list
}

// Changes returns where the parity of a generation lies at the node. The error says which of its files is missing or
// damaged: blocks in other files may be right nevertheless.
func (n *Node) Changes(l *Loaded, m *Manifest) (x *Changes, err error) {
	x = &Changes{Format: Format, Base: m.ParityBytes()}
	if n.Dir == nil {
		return x, fs.ErrNotExist
	}
	text, err := disk.ReadText(n.Dir, l.Path(ChangesFile), mostText)
	if err == nil {
		var read *Changes
		if read, err = DecodeChanges(text, m.BlockBytes); err == nil {
			x = read
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for i, name := range x.files() {
		bytes := x.Base
		if i > 0 {
			bytes = x.Files[i-1].Bytes
		}
		info, failed := n.Dir.Lstat(l.Path(name))
		switch {
		case i > 0 && errors.Is(failed, fs.ErrNotExist):
			err = cmp.Or(err, fmt.Errorf("%s is missing", name))
		case failed != nil:
			err = cmp.Or(err, failed)
		case !info.Mode().IsRegular():
			err = cmp.Or(err, disk.NotRegular(info.Mode()))
		case info.Size() != bytes:
			err = cmp.Or(err, fmt.Errorf("%s has %d bytes of %d", name, info.Size(), bytes))
		}
	}
	return x, err
}

// A ParityWriter writes the parity of a generation that is made: all of it, or blocks that lie over earlier ones.
type ParityWriter struct {
	node      *Node
	m         *Manifest
	file      disk.File   // nil: nothing was written yet
	kept      *Changes    // what stays below the blocks that are written; nil: all is written
	positions map[int]int // by the number of a block
}

// Begin makes the directory of a new generation, and returns when that was by the clock of the file system.
func (n *Node) Begin(m *Manifest) (w *ParityWriter, begun time.Time, err error) {
	if err := n.Drop(m.Generation); err != nil {
		return nil, begun, err
	}
	w = &ParityWriter{node: n, m: m, positions: map[int]int{}}
	if err := n.Dir.Mkdir(w.path(), 0o700); err != nil {
		return nil, begun, err
	}
	info, err := n.Dir.Lstat(w.path())
	if err != nil {
		return nil, begun, err
	}
	return w, info.ModTime(), nil
}

func (w *ParityWriter) path(name ...string) string {
	return MetaPath(append([]string{PendingDir(w.m.Generation)}, name...)...)
}

// Worthwhile reports whether so many blocks are to lie over earlier parity: with them its files take at most a quarter more
// than all parity, or there is no room for all of it.
func (w *ParityWriter) Worthwhile(earlier *Changes, blocks int) bool {
	changed := int64(blocks) * w.m.BlockBytes
	for _, c := range earlier.Files {
		changed += c.Bytes
	}
	if len(earlier.Files) == mostFiles || changed > mostChanged*w.m.BlockBytes {
		return false
	}
	if earlier.Base+changed <= w.m.ParityBytes()/4*5 {
		return true
	}
	room, _, err := w.node.Dir.Room(tree.MetaName)
	return err == nil && room < w.m.ParityBytes()
}

// Keep takes over earlier parity, by links. After an error all parity is to be written.
func (w *ParityWriter) Keep(l *Loaded, earlier *Changes) error {
	for i, name := range earlier.files() {
		if err := w.node.Dir.Link(l.Path(name), w.path(name)); err != nil {
			for _, linked := range earlier.files()[:i] {
				err = cmp.Or(w.node.Dir.Remove(w.path(linked)), err)
			}
			return err
		}
	}
	w.kept = &Changes{Format: Format, Base: earlier.Base, Files: slices.Clone(earlier.Files)}
	return nil
}

// Stays reports whether the earlier block of a number is there, as nothing was written over it.
func (w *ParityWriter) Stays(number int) bool {
	if w == nil || w.kept == nil {
		return false
	}
	_, written := w.positions[number]
	return !written
}

// Hole reports whether there is neither an earlier block of a number nor one that was written.
func (w *ParityWriter) Hole(number int) bool {
	_, written := w.positions[number]
	return w.kept == nil && !written
}

func (w *ParityWriter) open() (err error) {
	name := ParityFile
	if w.kept != nil {
		name = changesName(w.m.Generation)
	}
	if w.file == nil {
		w.file, err = w.node.Dir.OpenFile(w.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	return err
}

// WriteAt writes a block. Zeros are left as a hole.
func (w *ParityWriter) WriteAt(block []byte, offset int64) (int, error) {
	if err := w.open(); err != nil {
		return 0, err
	}
	row, chunk, _ := w.m.BlockAt(offset, w.m.ParityChunks)
	number := w.m.Number(row, chunk, w.m.ParityChunks)
	position, written := w.positions[number]
	if !written {
		position = len(w.positions)
		w.positions[number] = position
	}
	if !written && disk.Zeros(block) {
		return len(block), nil
	}
	if w.kept != nil {
		offset = int64(position) * w.m.BlockBytes
	}
	return w.file.WriteAt(block, offset)
}

// Finish makes the parity last.
func (w *ParityWriter) Finish() error {
	if w.kept == nil {
		return w.finish(w.m.ParityBytes())
	}
	x := w.kept
	if len(w.positions) > 0 {
		x.Files = append(x.Files, ChangedBlocks{w.m.Generation, int64(len(w.positions)) * w.m.BlockBytes, w.blocks()})
		if err := w.finish(x.Files[len(x.Files)-1].Bytes); err != nil {
			return err
		}
	}
	needed := map[int64]bool{}
	for number := range w.m.Rows() * w.m.ParityChunks {
		g, _ := x.changed(number)
		needed[g] = true
	}
	for _, c := range x.Files {
		if !needed[c.Generation] {
			if err := w.node.Dir.Remove(w.path(changesName(c.Generation))); err != nil {
				return err
			}
		}
	}
	x.Files = slices.DeleteFunc(x.Files, func(c ChangedBlocks) bool { return !needed[c.Generation] })
	if len(x.Files) == 0 && x.Base == w.m.ParityBytes() {
		return nil
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return w.node.WriteFile(PendingDir(w.m.Generation), ChangesFile, disk.Seal(text))
}

func (w *ParityWriter) finish(bytes int64) error {
	if err := w.open(); err != nil {
		return err
	}
	if err := w.file.Truncate(bytes); err != nil {
		return err
	}
	return w.file.Sync()
}

// blocks returns where the written blocks lie.
func (w *ParityWriter) blocks() (list [][3]int) {
	for _, number := range slices.Sorted(maps.Keys(w.positions)) {
		position := w.positions[number]
		if i := len(list) - 1; i >= 0 && list[i][1] == number && list[i][2]+number-list[i][0] == position {
			list[i][1]++
		} else {
			list = append(list, [3]int{number, number + 1, position})
		}
	}
	return list
}

// Close closes what is written.
func (w *ParityWriter) Close() {
	if w.file != nil {
		w.file.Close()
	}
}

// PutParity gives a generation another base, which has all its parity. Until ChangesFile has gone, earlier blocks lie over
// it, which are as right as they were.
func (n *Node) PutParity(dir, staged string) error {
	if err := n.MakeWay(dir, ParityFile); err != nil {
		return err
	}
	if err := n.Dir.Rename(staged, MetaPath(dir, ParityFile)); err != nil {
		return err
	}
	if err := cmp.Or(n.Dir.SyncDir(MetaPath(dir)), n.MakeWay(dir, ChangesFile)); err != nil {
		return err
	}
	if err := cmp.Or(disk.Discard(n.Dir, MetaPath(dir, ChangesFile)), n.Dir.SyncDir(MetaPath(dir))); err != nil {
		return err
	}
	entries, err := n.Dir.ReadDir(MetaPath(dir))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ChangesFile+".") && !e.IsDir() {
			err = cmp.Or(err, disk.Discard(n.Dir, MetaPath(dir, e.Name())))
		}
	}
	return err
}
