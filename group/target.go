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
	"volley/group/internal/tree"

	"volley/internal/disk"
)

// A target is a node that is written to. Everything lies under temporary names in its .volley until it is committed.
type target struct {
	s            *session
	node         *node
	member       *Member
	condition    *condition
	sums         *sums                // of the member
	files        []*tree.Entry        // that come back
	stage        disk.Dir             // in which everything that comes back is made
	temporary    map[tree.Name]string // where the files lie in it until then
	made         map[tree.Name]string // where directories do
	handles      handles[tree.Name]
	tree.Extents               // of files
	others       []*tree.Entry // that come back and are no files
	parity       disk.File     // nil: it is right as it is
	failed       error         // why the node is left out from here on: see try
	blocked      []string      // what cannot come back, and why
	left         []string      // what could not get its name, and why
	back         Recovered     // what could
	replaced     []tree.Name
	notes        []string
	unset        map[string][]tree.Name // what of entries could not be set
	opened       []*openedDir
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

func (s *session) newTarget(n *node, c *condition) *target {
	return &target{s: s, node: n, member: s.members[n.index], condition: c, temporary: map[tree.Name]string{}, made: map[tree.Name]string{}}
}

// prepare makes files of the right length, with the parts that are there still. What is in the way blocks them.
func (x *target) prepare(ctx context.Context) (err error) {
	n, c, m := x.node, x.condition, x.s.manifest
	if x.stage != nil { // it was rebuilt
		return nil
	}
	if err := n.tidy(x.s.states[n.index]); err != nil {
		return err
	}
	if st := x.s.states[n.index]; c.whole() && len(st.Bad) == 0 && !st.interrupted() {
		return nil
	}
	if x.stage, err = n.stage(); err != nil {
		return err
	}
	x.sums = newSums(m, tree.ExtentsOf(x.member.Entries))
	coming := map[tree.Name]bool{}
	for _, e := range c.restore {
		coming[e.Path] = true
	}
	stay := map[tree.Name]bool{}
	for i, e := range c.restore {
		if err := x.inTheWay(e, coming); err != nil {
			x.blocked = append(x.blocked, err.Error())
			stay[e.Path] = true
			continue
		}
		if e.Type != tree.TypeFile {
			x.others = append(x.others, e)
			continue
		}
		name := fmt.Sprint(i)
		x.files, x.temporary[e.Path] = append(x.files, e), name
		f, err := x.create(name, e.Size)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
	}
	x.others = slices.DeleteFunc(x.others, func(e *tree.Entry) bool {
		if e.Type == tree.TypeLink && stay[e.Target] {
			x.blocked = append(x.blocked, x.otherName(e))
			return true
		}
		return false
	})
	x.Extents = tree.ExtentsOf(x.files)
	if c.parity {
		if x.parity, err = x.create("parity", m.parityBytes()); err != nil {
			return err
		}
	}
	return x.copyGood(ctx)
}

// otherName says why a name does not come back: its file does not.
func (x *target) otherName(e *tree.Entry) string {
	return fmt.Sprintf("%s: it is another name of %s", x.node.path(e.Path), x.node.path(e.Target))
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

// copyGood copies what is right into what comes back.
func (x *target) copyGood(ctx context.Context) error {
	m := x.s.manifest
	d := newData(x.node.dir, x.member.Entries, true)
	defer d.close()
	for i, g := range x.sums.list {
		file := x.sums.files[g.file]
		if x.temporary[file.Path] == "" {
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
			return wrongFile(x.node.path(file.Path))
		}
		if err := x.write(part, g.at); err != nil {
			return err
		}
	}
	if x.parity == nil {
		return nil
	}
	old, err := x.node.openParity(x.s.generation)
	if err != nil {
		switch there := slices.ContainsFunc(x.condition.Parity, func(bad []int) bool { return len(bad) < m.rows() }); {
		case !there:
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return &WrongError{fmt.Sprintf("%v: it has gone meanwhile; run again", err)}
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
		return x.put(symbol{x.node.index, true, chunk}, row, block)
	})
}

// put compares a block, recovered or right, with its digests, and writes it where it is of what comes back.
func (x *target) put(of symbol, row int, block []byte) error {
	m := x.s.manifest
	if of.parity {
		if !m.sameParity(x.member, row, of.index, block) {
			return &WrongError{fmt.Sprintf("%s: what was recovered of its parity is not what was protected: data has changed meanwhile; run again", x.node.given)}
		}
		if x.parity == nil {
			return nil // it stays as it is
		}
		_, err := x.parity.WriteAt(block, m.offsetOf(row, of.index, m.ParityChunks))
		return err
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
		f, err := x.handles.get(e.Path, func() (disk.File, error) { return x.stage.OpenFile(x.temporary[e.Path], os.O_RDWR, 0) })
		if err != nil {
			return err
		}
		part := p[from-at : to-at]
		if e.Sparse && !slices.ContainsFunc(part, func(b byte) bool { return b != 0 }) {
			return nil // as the file was made
		}
		_, err = f.WriteAt(part, from-e.Offset)
		return err
	})
}

// finish gives all files that come back their modes and times, and makes them last.
func (x *target) finish() error {
	x.handles.close()
	for _, e := range x.files {
		name := x.temporary[e.Path]
		f, err := x.stage.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := cmp.Or(x.setMeta(x.stage, name, e), f.Sync(), f.Close()); err != nil {
			return err
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
