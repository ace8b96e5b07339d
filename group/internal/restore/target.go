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
// the node's, such as its parity, ends the node: see try.
type Target struct {
	origin       *Origin
	state        *store.State      // of the node
	records      map[string][]byte // record files that it lacks, by name
	node         *store.Node
	record       *store.Record
	condition    *content.Condition
	sums         *content.Sums              // of the record
	source       disk.Dir                   // in which what is right of the node's data is; nil: nowhere
	entries      bool                       // these alone come back: see Entries
	stage        disk.Dir                   // in which everything that comes back is made
	beside       map[string]*private        // further ones, by the directories on other file systems in which they lie
	files        []*regained                // of files that come back
	of           map[tree.Name]*regained    // by file
	handles      content.Handles[tree.Name] // by file
	tree.Extents                            // of files that are made of their bytes
	others       []*tree.Entry              // directories and symbolic links that come back
	made         map[tree.Name]string       // where directories lie in the stage until then
	named        map[string]bool            // what has its name, and lies in the stage yet, as it cannot be removed there
	gone         map[tree.Name]bool         // directories that cannot be made
	parity       disk.File                  // nil: it is right as it is
	disturbed    map[tree.Name]bool         // directories: see disturb
	chosen       bool                       // what comes back
	Failed       error                      // why the node is left out from here on: see try
	Blocked      []string                   // what cannot come back, and why
	Left         []string                   // what could not be made, and why
	Back         protection.Recovered       // what could
	Replaced     []tree.Name
	Notes        []string
	unset        map[string][]tree.Name // what of entries could not be set
	synced       map[string]bool        // directories in which there are new names
	opened       []*openedDir
}

// A regained file comes back under some of its names.
type regained struct {
	*tree.Entry // the file's, of the record
	names       []tree.Name
	staged      string      // where it lies in the stage; "": it cannot be made
	like        *tree.Entry // a name that is there, and right; nil: there is none
	linked      bool        // what is staged is one more name of that
	copied      *tree.Entry // a name that it has on another file system; nil: it has none yet
}

// Try calls f, unless the node is left out. An error of f leaves it out: one node that cannot be written to does not
// hold up the others. Only the end of the run, and recovered data that is wrong, concern all of them: these it returns.
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
	Text     []byte // of it, as stored
	Run      string
}

func NewTarget(from *Origin, st *store.State, record *store.Record, records map[string][]byte, n *store.Node, c *content.Condition) *Target {
	return &Target{
		origin: from, state: st, records: records, node: n, source: n.Dir, record: record, condition: c,
		beside: map[string]*private{}, of: map[tree.Name]*regained{}, made: map[tree.Name]string{}, named: map[string]bool{}, gone: map[tree.Name]bool{}, synced: map[string]bool{},
	}
}

// Entries has entries alone come back, in the node's directory or another one: parity, records and manifest stay as they
// are. What is right of the node's data is in source.
func (x *Target) Entries(source disk.Dir) { x.source, x.entries = source, true }

// leave notes that an entry cannot be made under a name, nor what lies in it if it is a directory.
func (x *Target) leave(e *tree.Entry, p tree.Name, err error) {
	what := "cannot be made"
	if e.Type == tree.TypeDir {
		x.gone[p] = true
		what += ", nor what lies in it"
	}
	x.Left = append(x.Left, fmt.Sprintf("%s %s: %s", x.node.Path(p), what, disk.Reason(err)))
}

// drop leaves a file, under all names under which it was to come back.
func (x *Target) drop(f *regained, err error) {
	x.handles.Drop(f.Path)
	if f.staged != "" {
		x.stage.Remove(f.staged)
		f.staged = ""
	}
	for _, p := range f.names {
		x.leave(f.Entry, p, err)
	}
}

// Prepare makes files of the right length, with the parts that are there still. What is in the way blocks them.
func (x *Target) Prepare(ctx context.Context) (err error) {
	n, c, m := x.node, x.condition, x.origin.Manifest
	if x.stage != nil { // it was rebuilt
		return nil
	}
	if err := n.Tidy(x.state); err != nil {
		return err
	}
	if x.idle() {
		return nil
	}
	if x.stage, err = stage(n); err != nil {
		return err
	}
	x.sums = content.NewSums(m, tree.ExtentsOf(x.record.Entries))
	x.choose()
	for i, f := range x.files {
		x.begun(f, fmt.Sprint(i))
	}
	x.Extents = tree.ExtentsOf(x.written())
	if c.Remake {
		length := m.ParityBytes()
		if c.Part {
			length = m.PartParityBytes()
		}
		if x.parity, err = x.create("parity", length); err != nil {
			return err
		}
	}
	return x.copyGood(ctx)
}

// idle reports whether the node is to stay as it is.
func (x *Target) idle() bool {
	st, c := x.state, x.condition
	return c.Whole() && len(c.Restore) == 0 && len(st.Bad) == 0 && !st.Interrupted()
}

// Writes returns what is to be written yet, as far as it is certain how much room that takes.
func (x *Target) Writes() store.Writes {
	if x == nil || x.stage != nil || x.idle() {
		return store.Writes{}
	}
	x.choose()
	w := store.Writes{Node: x.node, Freed: x.node.LeftBytes(x.state)}
	for _, f := range x.files {
		if f.like == nil && !f.Sparse {
			w.List = append(w.List, store.Write{Bytes: f.Size, Dir: tree.Name(path.Dir(string(f.names[0])))})
		}
	}
	if x.entries {
		return w
	}
	if x.condition.Remake {
		w.List = append(w.List, store.Write{Bytes: x.origin.Manifest.ParityBytes()})
	}
	for _, text := range x.records {
		w.List = append(w.List, store.Write{Bytes: int64(len(text))})
	}
	if x.state.Holding(x.origin.Current) == nil {
		w.List = append(w.List, x.node.Complements(x.origin.Manifest, x.origin.Text)...)
	}
	return w
}

// choose sorts what is to come back, but for what something is in the way of.
func (x *Target) choose() {
	if x.chosen {
		return
	}
	x.chosen = true
	coming, files := tree.ByPath(x.condition.Restore), tree.ByPath(content.FilesOf(x.record, x.condition.Restore))
	for _, e := range x.condition.Restore {
		if x.lost(e.Path) {
			continue // its directory is named
		}
		if info, err := x.node.Dir.Lstat(string(e.Path)); err == nil {
			if err := x.taken(e.Path, info); err != nil {
				x.leave(e, e.Path, err)
				continue
			}
		}
		if err := x.inTheWay(e, coming); err != nil {
			x.gone[e.Path] = e.Type == tree.TypeDir
			x.Blocked = append(x.Blocked, err.Error())
			continue
		}
		file := files[e.FileOf()]
		if file == nil {
			x.others = append(x.others, e)
			continue
		}
		f := x.of[file.Path]
		if f == nil {
			f = &regained{Entry: file, like: x.condition.Like[file.Path]}
			x.of[file.Path], x.files = f, append(x.files, f)
		}
		f.names = append(f.names, e.Path)
	}
}

// begun makes a file in the stage that is to get its bytes, or is one more name of one that has them.
func (x *Target) begun(f *regained, name string) {
	if f.like != nil && x.link(f.like, x.stage, name, staged(name)) {
		f.staged, f.linked = name, true
		return
	}
	file, err := x.create(name, f.Size)
	if err == nil {
		f.staged = name
		err = file.Close()
	}
	if err != nil {
		x.drop(f, err)
	}
}

// written returns the files whose bytes are written into the stage.
func (x *Target) written() (list []*tree.Entry) {
	for _, f := range x.files {
		if f.staged != "" && !f.linked {
			list = append(list, f.Entry)
		}
	}
	return list
}

// lost reports whether an entry is, or lies in, a directory that cannot be made, which is named.
func (x *Target) lost(p tree.Name) bool {
	for up := string(p); up != "."; up = path.Dir(up) {
		if x.gone[tree.Name(up)] {
			return true
		}
	}
	return false
}

// inTheWay returns an error where above an entry is no directory, or in its place a directory.
func (x *Target) inTheWay(e *tree.Entry, coming map[tree.Name]*tree.Entry) error {
	for up := path.Dir(string(e.Path)); up != "."; up = path.Dir(up) {
		info, err := x.node.Dir.Lstat(up)
		if err == nil && !info.IsDir() && coming[tree.Name(up)] == nil {
			return fmt.Errorf("%s: %s is no directory any more: move it away", x.node.Path(e.Path), x.node.Path(tree.Name(up)))
		}
	}
	if info, err := x.node.Dir.Lstat(string(e.Path)); err == nil && info.IsDir() && e.Type != tree.TypeDir {
		return fmt.Errorf("%s is a directory, and was a %s when it was protected: move it away", x.node.Path(e.Path), e.Type)
	}
	return nil
}

// taken returns an error where what has the name of an entry is another entry, as on a disk to which two names are one.
func (x *Target) taken(p tree.Name, there fs.FileInfo) error {
	if l := x.condition.Listing; p == "." || l != nil && l.Find(p) != nil {
		return nil
	}
	dir := path.Dir(string(p))
	list, err := x.node.Dir.ReadDir(dir)
	if err != nil || slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == path.Base(string(p)) }) {
		return err
	}
	for _, d := range list {
		is := tree.Name(path.Join(dir, d.Name()))
		info, err := d.Info()
		if err == nil && disk.Inode(info) == disk.Inode(there) && slices.ContainsFunc(x.record.Entries, func(e *tree.Entry) bool { return e.Path == is }) {
			return fmt.Errorf("to this disk the name is that of %s. Recover the node on a disk that tells them apart", x.node.Path(is))
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
		f := x.of[x.sums.Files[g.File].Path]
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
	old, err := x.node.OpenParity(x.origin.Generation)
	if err != nil {
		switch there := slices.ContainsFunc(x.condition.Parity, func(bad []int) bool { return len(bad) < m.Rows() }); {
		case !there:
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return &protection.CorruptError{Reason: fmt.Sprintf("%v: it has gone meanwhile; run again", err)}
		}
		return err
	}
	defer old.Close()
	return m.InOrder(m.ParityChunks, func(row, chunk int, at, n int64) error {
		if _, bad := slices.BinarySearch(x.condition.Parity[chunk], row); bad {
			return nil
		}
		block := make([]byte, n)
		if _, err := old.ReadAt(block, at); err != nil {
			return err
		}
		return x.Take(content.Symbol{Node: x.node.Index, Parity: true, Index: chunk}, row, block)
	})
}

// Take is [Target.Put], but leaves what is wrong, and what lies in one block with that: a program has written meanwhile to
// what it comes of. Else one write in the time that a run takes would hold up all that is lost.
func (x *Target) Take(of content.Symbol, row int, block []byte) error {
	err := x.Put(of, row, block)
	if !errors.As(err, new(*protection.CorruptError)) {
		return err
	}
	if of.Parity {
		return x.leaveParity()
	}
	return x.Overlapping(x.origin.Manifest.OffsetOf(row, of.Index, x.origin.Manifest.DataChunks), int64(len(block)), func(_ int, e *tree.Entry, _, _ int64) error {
		if f := x.of[e.Path]; f.staged != "" {
			x.drop(f, errMeanwhile)
		}
		return nil
	})
}

var errMeanwhile = errors.New("data that it comes of has changed meanwhile; run again")

// leaveParity leaves parity of which not all can be made: one that is there stays as it is.
func (x *Target) leaveParity() (err error) {
	c, m := x.condition, x.origin.Manifest
	if x.parity == nil || c.Part {
		return nil
	}
	x.Left = append(x.Left, fmt.Sprintf("%s cannot be made: %v", x.node.Path(tree.Name(x.node.Generation(x.origin.Generation).Path(store.ParityFile))), errMeanwhile))
	if c.Part = !c.Earlier; c.Part {
		return x.parity.Truncate(m.PartParityBytes())
	}
	err = x.parity.Close()
	x.parity = nil
	return err
}

// Put compares a block, recovered or right, with its digests, and writes it where it is of what comes back.
func (x *Target) Put(of content.Symbol, row int, block []byte) error {
	m := x.origin.Manifest
	if of.Parity {
		if !content.SameParity(m, x.record, row, of.Index, block) {
			return &protection.CorruptError{Reason: fmt.Sprintf("%s: what was recovered of its parity is not what was protected: data has changed meanwhile; run again", x.node.DirName)}
		}
		if x.parity == nil {
			return nil // it stays as it is
		}
		_, err := x.parity.WriteAt(block, m.OffsetOf(row, of.Index, m.ParityChunks))
		return err
	}
	at := m.OffsetOf(row, of.Index, m.DataChunks)
	if wrong := x.sums.Wrong(x.record, at, block); wrong != nil {
		return content.WrongFile(x.node.Path(wrong.Path))
	}
	return x.write(block, at)
}

// write writes a part of the node's data into the files that come back.
func (x *Target) write(p []byte, at int64) error {
	return x.Overlapping(at, int64(len(p)), func(_ int, e *tree.Entry, from, to int64) error {
		f := x.of[e.Path]
		part := p[from-at : to-at]
		if e.Sparse && !slices.ContainsFunc(part, func(b byte) bool { return b != 0 }) {
			return nil // as the file was made
		}
		if f.staged == "" {
			return nil
		}
		file, err := x.handles.Get(e.Path, func() (disk.File, error) { return x.stage.OpenFile(f.staged, os.O_RDWR, 0) })
		if err == nil {
			_, err = file.WriteAt(part, from-e.Offset)
		}
		if err != nil {
			x.drop(f, err)
		}
		return nil
	})
}

// Finish gives all files that come back their modes and times, and makes them last.
func (x *Target) Finish() error {
	x.handles.Close()
	for _, f := range x.files {
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
	if x.parity != nil {
		x.parity.Close()
	}
	x.unstage() // what is left the next run removes
}
