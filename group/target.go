package group

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
	"syscall"
	"volley/group/internal/tree"

	"volley/internal/disk"
)

// A target is a node that is written to. Everything lies under temporary names in its .volley until it is committed.
//
// An entry that cannot be made is one entry: it is left, by name and reason, and all else goes on. An error of what is
// the node's, such as its parity, ends the node: see try.
type target struct {
	origin       *origin
	state        *state            // of the node
	records      map[string][]byte // record files that it lacks, by name
	node         *node
	member       *Member
	condition    *condition
	sums         *sums                   // of the member
	stage        disk.Dir                // in which everything that comes back is made
	beside       map[string]*private     // further ones, by the directories on other file systems in which they lie
	files        []*regained             // of files that come back
	of           map[tree.Name]*regained // by file
	handles      handles[tree.Name]      // by file
	tree.Extents                         // of files that are made of their bytes
	others       []*tree.Entry           // directories and symbolic links that come back
	made         map[tree.Name]string    // where directories lie in the stage until then
	gone         map[tree.Name]bool      // directories that cannot be made
	parity       disk.File               // nil: it is right as it is
	failed       error                   // why the node is left out from here on: see try
	blocked      []string                // what cannot come back, and why
	left         []string                // what could not be made, and why
	back         Recovered               // what could
	replaced     []tree.Name
	notes        []string
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

// try calls f, unless the node is left out. An error of f leaves it out: one node that cannot be written to does not
// hold up the others. Only the end of the run, and recovered data that is wrong, concern all of them: these it returns.
func (x *target) try(ctx context.Context, f func() error) error {
	if x.failed != nil {
		return nil
	}
	err := f()
	if err == nil || ctx.Err() != nil || errors.As(err, new(*WrongError)) {
		return err
	}
	x.failed = err
	return nil
}

// An origin is the generation from which something comes back, and the run that does it.
type origin struct {
	current
	manifest *Manifest
	text     []byte // of it, as stored
	run      string
}

func newTarget(from *origin, st *state, member *Member, records map[string][]byte, n *node, c *condition) *target {
	return &target{
		origin: from, state: st, records: records, node: n, member: member, condition: c,
		beside: map[string]*private{}, of: map[tree.Name]*regained{}, made: map[tree.Name]string{}, gone: map[tree.Name]bool{}, synced: map[string]bool{},
	}
}

// leave notes that an entry cannot be made under a name, nor what lies in it if it is a directory.
func (x *target) leave(e *tree.Entry, p tree.Name, err error) {
	what := "cannot be made"
	if e.Type == tree.TypeDir {
		x.gone[p] = true
		what += ", nor what lies in it"
	}
	x.left = append(x.left, fmt.Sprintf("%s %s: %s", x.node.path(p), what, disk.Reason(err)))
}

// drop leaves a file, under all names under which it was to come back.
func (x *target) drop(f *regained, err error) {
	x.handles.drop(f.Path)
	if f.staged != "" {
		x.stage.Remove(f.staged)
		f.staged = ""
	}
	for _, p := range f.names {
		x.leave(f.Entry, p, err)
	}
}

// room calls f, and again where there was no room, as long as there is a file that can be left: the largest first, so
// that most come back, and parity does.
func (x *target) room(f func() error) error {
	for {
		err := f()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		var largest *regained
		for _, f := range x.files {
			if f.staged != "" && !f.linked && f.Size > 0 && (largest == nil || f.Size > largest.Size) {
				largest = f
			}
		}
		if largest == nil {
			return err
		}
		x.drop(largest, err)
	}
}

// prepare makes files of the right length, with the parts that are there still. What is in the way blocks them.
func (x *target) prepare(ctx context.Context) (err error) {
	n, c, m := x.node, x.condition, x.origin.manifest
	if x.stage != nil { // it was rebuilt
		return nil
	}
	if err := n.tidy(x.state); err != nil {
		return err
	}
	if st := x.state; c.whole() && len(c.restore) == 0 && len(st.Bad) == 0 && !st.interrupted() {
		return nil
	}
	if x.stage, err = n.stage(); err != nil {
		return err
	}
	x.sums = newSums(m, tree.ExtentsOf(x.member.Entries))
	x.choose()
	for i, f := range x.files {
		x.begun(f, fmt.Sprint(i))
	}
	x.Extents = tree.ExtentsOf(x.written())
	if c.remake {
		if x.parity, err = x.create("parity", m.parityBytes()); err != nil {
			return err
		}
	}
	return x.copyGood(ctx)
}

// choose sorts what is to come back, but for what something is in the way of.
func (x *target) choose() {
	coming, files := map[tree.Name]bool{}, map[tree.Name]*tree.Entry{}
	for _, e := range x.condition.restore {
		coming[e.Path] = true
	}
	for _, f := range filesOf(x.member, x.condition.restore) {
		files[f.Path] = f
	}
	for _, e := range x.condition.restore {
		if x.lost(e.Path) {
			continue // its directory is named
		}
		if info, err := x.node.dir.Lstat(string(e.Path)); err == nil {
			if err := x.taken(e.Path, info); err != nil {
				x.leave(e, e.Path, err)
				continue
			}
		}
		if err := x.inTheWay(e, coming); err != nil {
			x.gone[e.Path] = e.Type == tree.TypeDir
			x.blocked = append(x.blocked, err.Error())
			continue
		}
		file := files[e.FileOf()]
		if file == nil {
			x.others = append(x.others, e)
			continue
		}
		f := x.of[file.Path]
		if f == nil {
			f = &regained{Entry: file, like: x.condition.like[file.Path]}
			x.of[file.Path], x.files = f, append(x.files, f)
		}
		f.names = append(f.names, e.Path)
	}
}

// begun makes a file in the stage that is to get its bytes, or is one more name of one that has them.
func (x *target) begun(f *regained, name string) {
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
func (x *target) written() (list []*tree.Entry) {
	for _, f := range x.files {
		if f.staged != "" && !f.linked {
			list = append(list, f.Entry)
		}
	}
	return list
}

// lost reports whether an entry is, or lies in, a directory that cannot be made, which is named.
func (x *target) lost(p tree.Name) bool {
	for up := string(p); up != "."; up = path.Dir(up) {
		if x.gone[tree.Name(up)] {
			return true
		}
	}
	return false
}

// inTheWay returns an error where above an entry is no directory, or in its place a directory.
func (x *target) inTheWay(e *tree.Entry, coming map[tree.Name]bool) error {
	for up := path.Dir(string(e.Path)); up != "."; up = path.Dir(up) {
		info, err := x.node.dir.Lstat(up)
		if err == nil && !info.IsDir() && !coming[tree.Name(up)] {
			return fmt.Errorf("%s: %s is no directory any more: move it away", x.node.path(e.Path), x.node.path(tree.Name(up)))
		}
	}
	if info, err := x.node.dir.Lstat(string(e.Path)); err == nil && info.IsDir() && e.Type != tree.TypeDir {
		return fmt.Errorf("%s is a directory, and was a %s when it was protected: move it away", x.node.path(e.Path), e.Type)
	}
	return nil
}

// taken returns an error where what has the name of an entry is another entry, as on a disk to which two names are one.
func (x *target) taken(p tree.Name, there fs.FileInfo) error {
	if l := x.condition.listing; p == "." || l != nil && l.Find(p) != nil {
		return nil
	}
	dir := path.Dir(string(p))
	list, err := x.node.dir.ReadDir(dir)
	if err != nil || slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == path.Base(string(p)) }) {
		return err
	}
	for _, d := range list {
		is := tree.Name(path.Join(dir, d.Name()))
		info, err := d.Info()
		if err == nil && disk.Inode(info) == disk.Inode(there) && slices.ContainsFunc(x.member.Entries, func(e *tree.Entry) bool { return e.Path == is }) {
			return fmt.Errorf("to this disk the name is that of %s. Recover the node on a disk that tells them apart", x.node.path(is))
		}
	}
	return nil
}

// copyGood copies what is right into what comes back.
func (x *target) copyGood(ctx context.Context) error {
	m := x.origin.manifest
	d := newData(x.node.dir, x.member.Entries, true)
	defer d.close()
	for i, g := range x.sums.list {
		f := x.of[x.sums.files[g.file].Path]
		if f == nil || f.staged == "" || f.linked {
			continue
		}
		if _, bad := slices.BinarySearch(x.condition.Data[g.chunk], g.row); bad {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := make([]byte, g.n)
		if _, err := d.ReadAt(part, g.at); err != nil {
			return err
		}
		if !m.sameDigest(part, x.member.Segments, i) {
			if failing := d.failing[f.Path]; failing != nil {
				x.drop(f, failing)
				continue
			}
			return wrongFile(x.node.path(f.Path))
		}
		if err := x.write(part, g.at); err != nil {
			return err
		}
	}
	if x.parity == nil {
		return nil
	}
	old, err := x.node.openParity(x.origin.generation)
	if err != nil {
		switch there := slices.ContainsFunc(x.condition.Parity, func(bad []int) bool { return len(bad) < m.rows() }); {
		case !there:
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return &WrongError{What: fmt.Sprintf("%v: it has gone meanwhile; run again", err)}
		}
		return err
	}
	defer old.Close()
	return m.inOrder(m.ParityChunks, func(row, chunk int, at, n int64) error {
		if _, bad := slices.BinarySearch(x.condition.Parity[chunk], row); bad {
			return nil
		}
		block := make([]byte, n)
		if _, err := old.ReadAt(block, at); err != nil {
			return err
		}
		return x.put(symbol{node: x.node.index, parity: true, index: chunk}, row, block)
	})
}

// put compares a block, recovered or right, with its digests, and writes it where it is of what comes back.
func (x *target) put(of symbol, row int, block []byte) error {
	m := x.origin.manifest
	if of.parity {
		if !m.sameParity(x.member, row, of.index, block) {
			return &WrongError{What: fmt.Sprintf("%s: what was recovered of its parity is not what was protected: data has changed meanwhile; run again", x.node.given)}
		}
		if x.parity == nil {
			return nil // it stays as it is
		}
		return x.room(func() error {
			_, err := x.parity.WriteAt(block, m.offsetOf(row, of.index, m.ParityChunks))
			return err
		})
	}
	at := m.offsetOf(row, of.index, m.DataChunks)
	if wrong := x.sums.wrong(x.member, at, block); wrong != nil {
		return wrongFile(x.node.path(wrong.Path))
	}
	return x.write(block, at)
}

// write writes a part of the node's data into the files that come back.
func (x *target) write(p []byte, at int64) error {
	return x.Overlapping(at, int64(len(p)), func(_ int, e *tree.Entry, from, to int64) error {
		f := x.of[e.Path]
		part := p[from-at : to-at]
		if e.Sparse && !slices.ContainsFunc(part, func(b byte) bool { return b != 0 }) {
			return nil // as the file was made
		}
		err := x.room(func() error {
			if f.staged == "" {
				return nil
			}
			file, err := x.handles.get(e.Path, func() (disk.File, error) { return x.stage.OpenFile(f.staged, os.O_RDWR, 0) })
			if err == nil {
				_, err = file.WriteAt(part, from-e.Offset)
			}
			return err
		})
		if err != nil {
			x.drop(f, err)
		}
		return nil
	})
}

// finish gives all files that come back their modes and times, and makes them last.
func (x *target) finish() error {
	x.handles.close()
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

// discard takes targets back, one after the other.
func discard(targets map[int]*target) {
	for _, n := range slices.Sorted(maps.Keys(targets)) {
		targets[n].discard()
		delete(targets, n)
	}
}

func (x *target) discard() {
	x.handles.close()
	if x.parity != nil {
		x.parity.Close()
	}
	x.unstage() // what is left the next run removes
}
