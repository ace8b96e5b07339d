// Package restore brings entries back at a node: it makes them beside the others, and gives each its name when all of it
// is right.
package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// A Target is a node that is written to. Everything lies under temporary names in its .volley until it is committed.
//
// An entry that cannot be made is one entry: it is left, by name and reason, and all else goes on. An error of what is
// the node's, such as its parity, ends the node: see Try.
type Target struct {
	origin       *Origin
	state        *store.State      // of the node
	records      map[string][]byte // record files that it lacks, by name
	node         *store.Node
	record       *store.Record
	condition    *content.Condition
	sums         *content.Sums              // of the record
	source       disk.Dir                   // with the intact part of the node's data; nil: none
	entriesOnly  bool                       // see RestoreEntriesOnly
	base         *private                   // where everything that comes back is made; nil: there is none
	stage        *private                   // where entries are made: the same, or in the node itself
	entries      []*regained                // that come back
	byPath       map[tree.Name]*regained    // the same
	handles      content.Handles[tree.Name] // by file
	tree.Extents                            // of files whose bytes are written
	failedDirs   map[tree.Name]bool         // directories that cannot be made
	parity       disk.File                  // nil: it stays
	disturbed    map[tree.Name]bool         // directories: see noteDisturbed
	chosen       bool                       // choose has run
	Failed       error                      // why the node is left out from here on: see Try
	Blocked      []string                   // what cannot come back, and why
	Unfinished   []string                   // what could not be made or removed, and why
	Recovered    protection.Recovered       // what came back
	Replaced     []tree.Name
	Notes        []string
	unset        map[string][]tree.Name // metadata that could not be set
	synced       map[string]bool        // directories in which there are new names
	opened       map[tree.Name]*openedDir
}

// A regained entry comes back: a file under some of its names.
type regained struct {
	*tree.Entry // of the record
	names       []tree.Name
	staged      string      // where it lies in the stage; "": it is not made yet, or cannot be
	intactName  *tree.Entry // an intact name; nil: there is none
	linked      bool        // the staged file is a link to intactName
}

// Try calls f, unless the node is left out. An error of f leaves the node out, so that it does not hold up the others.
// Try returns only the end of the run, and wrong recovered data: these concern all nodes.
func (x *Target) Try(ctx context.Context, f func() error) error {
	if x.Failed != nil {
		return nil
	}
	err := f()
	if err == nil || ctx.Err() != nil || errors.As(err, new(*protection.CorruptError)) {
		return err
	}
	x.Failed = err
	return nil
}

// An Origin is the generation from which something comes back, and the run that does it.
type Origin struct {
	store.Current
	Manifest *store.Manifest
	Text     []byte // the manifest, as stored
	Run      string
}

func NewTarget(origin *Origin, st *store.State, record *store.Record, records map[string][]byte, n *store.Node, c *content.Condition) *Target {
	return &Target{
		origin: origin, state: st, records: records, node: n, source: n.Dir, record: record, condition: c,
		byPath:     map[tree.Name]*regained{},
		failedDirs: map[tree.Name]bool{}, disturbed: map[tree.Name]bool{}, unset: map[string][]tree.Name{},
		synced: map[string]bool{}, opened: map[tree.Name]*openedDir{},
	}
}

// RestoreEntriesOnly restores entries alone, in the node's directory or another one: parity, records and manifest stay.
// The source has the intact part of the node's data.
func (x *Target) RestoreEntriesOnly(source disk.Dir) { x.source, x.entriesOnly = source, true }

// noteUnfinished notes what problem there is with a path.
func (x *Target) noteUnfinished(p tree.Name, problem string, err error) {
	x.Unfinished = append(x.Unfinished, fmt.Sprintf("%s%s: %s", x.node.Path(p), problem, disk.Reason(err)))
}

// noteFailed notes that an entry cannot be made under a name. It fails all that lies in a directory, too.
func (x *Target) noteFailed(e *tree.Entry, p tree.Name, err error) {
	problem := " cannot be made"
	if e.Type == tree.TypeDir {
		x.failedDirs[p] = true
		problem += ", nor what lies in it"
	}
	x.noteUnfinished(p, problem, err)
}

// drop discards a staged file, and notes all its names as failed.
func (x *Target) drop(f *regained, err error) {
	x.handles.Drop(f.Path)
	if f.staged != "" {
		x.stage.Remove(f.staged)
		f.staged = ""
	}
	for _, p := range f.names {
		x.noteFailed(f.Entry, p, err)
	}
}

// Prepare makes files of the right length, with the parts that still exist. It notes entries that obstacles block.
func (x *Target) Prepare(ctx context.Context) (err error) {
	n, c, m := x.node, x.condition, x.origin.Manifest
	if x.base != nil { // it was rebuilt
		return nil
	}
	if err := n.Tidy(x.state); err != nil {
		return err
	}
	if x.idle() {
		return nil
	}
	if err := x.makeStage(); err != nil {
		return err
	}
	x.sums = content.NewSums(m, tree.ExtentsOf(x.record.Entries))
	x.choose()
	for i, f := range x.entries {
		if f.Type == tree.TypeFile {
			x.startFile(f, fmt.Sprint(i))
		}
	}
	x.Extents = tree.ExtentsOf(x.writtenFiles())
	if c.Remake {
		length := m.ParityBytes()
		if c.Part {
			length = m.PartParityBytes()
		}
		if x.parity, err = createIn(x.base, parityName, length); err != nil {
			return err
		}
	}
	return x.copyGood(ctx)
}

// idle reports whether the node is to stay as it is.
func (x *Target) idle() bool {
	st, c := x.state, x.condition
	return c.Intact() && len(c.Restore) == 0 && len(st.Bad) == 0 && !st.Interrupted()
}

// Writes returns what is still to write, as far as the room it takes is certain.
func (x *Target) Writes() store.Writes {
	if x == nil || x.base != nil || x.idle() {
		return store.Writes{}
	}
	x.choose()
	stageDir := ""
	if x.node.Meta != "" {
		stageDir = "."
	}
	w := store.Writes{Node: x.node, Freed: x.node.LeftBytes(x.state)}
	for _, f := range x.entries {
		if f.Type == tree.TypeFile && f.intactName == nil && !f.Sparse {
			w.List = append(w.List, store.Write{Bytes: f.Size, Dir: stageDir})
		}
	}
	if x.entriesOnly {
		return w
	}
	if x.condition.Remake {
		w.List = append(w.List, store.Write{Bytes: x.origin.Manifest.FilledParity(x.record)})
	}
	for _, text := range x.records {
		w.List = append(w.List, store.Write{Bytes: int64(len(text))})
	}
	if x.state.Holding(x.origin.Current) == nil {
		w.List = append(w.List, x.node.Complements(x.origin.Manifest, x.origin.Text)...)
	}
	return w
}

// choose sorts the entries that come back, except those that an obstacle blocks.
func (x *Target) choose() {
	if x.chosen {
		return
	}
	x.chosen = true
	coming, files := tree.ByPath(x.condition.Restore), tree.ByPath(content.FilesOf(x.record, x.condition.Restore))
	for _, e := range x.condition.Restore {
		if x.inFailedDir(e.Path) {
			continue // its directory has a note
		}
		if info, err := x.node.Dir.Lstat(string(e.Path)); err == nil {
			if err := x.checkNameFree(e.Path, info); err != nil {
				x.noteFailed(e, e.Path, err)
				continue
			}
		}
		if err := x.checkWay(e, coming); err != nil {
			x.failedDirs[e.Path] = e.Type == tree.TypeDir
			x.Blocked = append(x.Blocked, err.Error())
			continue
		}
		source := cmp.Or(files[e.FileOf()], e)
		f := x.byPath[source.Path]
		if f == nil {
			f = &regained{Entry: source, intactName: x.condition.IntactNames[source.Path]}
			x.byPath[source.Path], x.entries = f, append(x.entries, f)
		}
		f.names = append(f.names, e.Path)
	}
}

// startFile makes a file in the stage: a link to an intact name, or else an empty file of the right length.
func (x *Target) startFile(f *regained, name string) {
	if f.intactName != nil && x.link(f.intactName, name) {
		f.staged, f.linked = name, true
		return
	}
	file, err := createIn(x.stage, name, f.Size)
	if err == nil {
		f.staged = name
		err = file.Close()
	}
	if err != nil {
		x.drop(f, err)
	}
}

// writtenFiles returns the files whose bytes are written into the stage.
func (x *Target) writtenFiles() (list []*tree.Entry) {
	for _, f := range x.entries {
		if f.staged != "" && !f.linked {
			list = append(list, f.Entry)
		}
	}
	return list
}

// inFailedDir reports whether an entry is, or lies in, a directory that cannot be made. The directory has a note.
func (x *Target) inFailedDir(p tree.Name) bool {
	for dir := string(p); dir != "."; dir = path.Dir(dir) {
		if x.failedDirs[tree.Name(dir)] {
			return true
		}
	}
	return false
}

// checkWay returns an error if an ancestor of an entry is no directory, or if a directory has a file's name.
func (x *Target) checkWay(e *tree.Entry, coming map[tree.Name]*tree.Entry) error {
	for dir := path.Dir(string(e.Path)); dir != "."; dir = path.Dir(dir) {
		info, err := x.node.Dir.Lstat(dir)
		if err == nil && !info.IsDir() && coming[tree.Name(dir)] == nil {
			return fmt.Errorf("%s: %s is no directory any more: move it away", x.node.Path(e.Path), x.node.Path(tree.Name(dir)))
		}
	}
	if info, err := x.node.Dir.Lstat(string(e.Path)); err == nil && info.IsDir() && e.Type != tree.TypeDir {
		return fmt.Errorf("%s is a directory, and was a %s when it was protected: move it away", x.node.Path(e.Path), e.Type)
	}
	return nil
}

// checkNameFree returns an error if the name leads to another entry, as on a disk that does not tell two names apart.
func (x *Target) checkNameFree(p tree.Name, existing fs.FileInfo) error {
	if l := x.condition.Listing; p == "." || l != nil && l.Find(p) != nil {
		return nil
	}
	dir := path.Dir(string(p))
	list, err := x.node.Dir.ReadDir(dir)
	if err != nil || slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == path.Base(string(p)) }) {
		return err
	}
	for _, d := range list {
		otherName := tree.Name(path.Join(dir, d.Name()))
		info, err := d.Info()
		if err == nil && disk.Inode(info) == disk.Inode(existing) && slices.ContainsFunc(x.record.Entries, func(e *tree.Entry) bool { return e.Path == otherName }) {
			return fmt.Errorf("to this disk the name is that of %s. Recover the node on a disk that tells them apart", x.node.Path(otherName))
		}
	}
	return nil
}

// copyGood copies what is right into what comes back.
func (x *Target) copyGood(ctx context.Context) error {
	m := x.origin.Manifest
	d := content.NewData(x.source, x.record.Entries, true)
	defer d.Close()
	for i, g := range x.sums.List {
		f := x.byPath[x.sums.Files[g.File].Path]
		if f == nil || f.staged == "" || f.linked {
			continue
		}
		if _, bad := slices.BinarySearch(x.condition.Touched[g.Chunk], g.Row); bad {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := make([]byte, g.N)
		if _, err := d.ReadAt(part, g.Offset); err != nil {
			return err
		}
		if !m.SameDigest(part, x.record.FileDigests, i) {
			x.drop(f, cmp.Or(d.Failing[f.Path], errMeanwhile))
			continue
		}
		if err := x.write(part, g.Offset); err != nil {
			return err
		}
	}
	if x.parity == nil {
		return nil
	}
	old := content.ParityOf(x.node, m)
	defer old.Close()
	return m.InOrder(m.ParityChunks, func(row, chunk int, offset, n int64) error {
		if _, bad := slices.BinarySearch(x.condition.Parity[chunk], row); bad {
			return nil
		}
		block := make([]byte, n)
		_, err := old.ReadAt(block, offset)
		if errors.Is(err, fs.ErrNotExist) {
			return &protection.CorruptError{Reason: fmt.Sprintf("%v: it has gone meanwhile; run again", err)}
		} else if err != nil {
			return err
		}
		return x.PutOrSkip(content.Symbol{Node: x.node.Index, Parity: true, Index: chunk}, row, block)
	})
}

// PutOrSkip is [Target.Put], but drops the files of a wrong block: a program has changed a source of it meanwhile. One
// such write must not stop the recovery of all that is lost.
func (x *Target) PutOrSkip(symbol content.Symbol, row int, block []byte) error {
	err := x.Put(symbol, row, block)
	if !errors.As(err, new(*protection.CorruptError)) {
		return err
	}
	if symbol.Parity {
		return x.leaveParity()
	}
	return x.Overlapping(x.origin.Manifest.OffsetOf(row, symbol.Index, x.origin.Manifest.DataChunks), int64(len(block)), func(_ int, e *tree.Entry, _, _ int64) error {
		if f := x.byPath[e.Path]; f.staged != "" {
			x.drop(f, errMeanwhile)
		}
		return nil
	})
}

var errMeanwhile = errors.New("data that it comes of has changed meanwhile; run again")

// leaveParity gives up parity that cannot be made in full: earlier parity stays.
func (x *Target) leaveParity() (err error) {
	c, m := x.condition, x.origin.Manifest
	if x.parity == nil || c.Part {
		return nil
	}
	x.noteUnfinished(tree.Name(x.node.Generation(x.origin.Generation).Path(store.ParityFile)), " cannot be made", errMeanwhile)
	if c.Part = !c.Earlier; c.Part {
		return x.parity.Truncate(m.PartParityBytes())
	}
	return x.closeParity()
}

// closeParity ends the writing of parity, if there is any.
func (x *Target) closeParity() (err error) {
	if x.parity != nil {
		err = x.parity.Close()
		x.parity = nil
	}
	return err
}

// Put compares a block with its digests, and writes the parts that come back.
func (x *Target) Put(symbol content.Symbol, row int, block []byte) error {
	m := x.origin.Manifest
	if symbol.Parity {
		if !content.SameParity(m, x.record, row, symbol.Index, block) {
			return &protection.CorruptError{Reason: fmt.Sprintf("%s: what was recovered of its parity is not what was protected: data has changed meanwhile; run again", x.node.DirName)}
		}
		if x.parity == nil || disk.Zeros(block) {
			return nil // earlier parity stays, or the file is as it was made
		}
		_, err := x.parity.WriteAt(block, m.OffsetOf(row, symbol.Index, m.ParityChunks))
		return err
	}
	offset := m.OffsetOf(row, symbol.Index, m.DataChunks)
	if wrong := x.sums.FirstWrongFile(x.record, offset, block); wrong != nil {
		return content.WrongFileError(x.node.Path(wrong.Path))
	}
	return x.write(block, offset)
}

// write writes a part of the node's data into the files that come back.
func (x *Target) write(p []byte, offset int64) error {
	return x.Overlapping(offset, int64(len(p)), func(_ int, e *tree.Entry, start, limit int64) error {
		f := x.byPath[e.Path]
		part := p[start-offset : limit-offset]
		if e.Sparse && disk.Zeros(part) {
			return nil // as the file was made
		}
		if f.staged == "" {
			return nil
		}
		file, err := x.handles.Get(e.Path, func() (disk.File, error) { return x.stage.OpenFile(f.staged, os.O_RDWR, 0) })
		if err == nil {
			_, err = file.WriteAt(part, start-e.Offset)
		}
		if err != nil {
			x.drop(f, err)
		}
		return nil
	})
}

// Finish sets the modes and times of all files that come back, and syncs them.
func (x *Target) Finish() error {
	x.handles.Close()
	for _, f := range x.entries {
		if f.staged == "" || f.linked {
			continue
		}
		file, err := x.stage.OpenFile(f.staged, os.O_RDWR, 0)
		if err == nil {
			err = cmp.Or(x.setMeta(x.stage, f.staged, f.Entry), file.Sync(), file.Close())
		}
		if err != nil {
			x.drop(f, err)
		}
	}
	if x.parity != nil {
		return x.parity.Sync()
	}
	return nil
}

// Discard takes targets back, one after the other.
func Discard(targets map[int]*Target) {
	for _, n := range slices.Sorted(maps.Keys(targets)) {
		targets[n].discard()
		delete(targets, n)
	}
}

func (x *Target) discard() {
	x.handles.Close()
	x.closeParity()
	x.unstage() // the next run removes the rest
}
