package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"volley/internal/atomicfile"
	"volley/transport"
)

// RecoverOptions say how to recover.
type RecoverOptions struct {
	Options
	Revert bool // bring files back too that have another length and were written to since
	Beyond bool // try although more nodes are lost than the group tolerates
	DryRun bool // write nothing
}

// A RecoverReport says what Recover has done.
type RecoverReport struct {
	Generation int64        `json:"generation"`
	Nodes      []NodeReport `json:"nodes"` // as they were found
	Files      int          `json:"files"` // brought back
	Blocks     int          `json:"blocks"`
	Kept       []string     `json:"kept,omitempty"`     // files that have changed and were left alone
	Replaced   []string     `json:"replaced,omitempty"` // where files lie now that were written to since
	Notes      []string     `json:"notes,omitempty"`
	Traffic    Traffic      `json:"traffic"`
	Seconds    float64      `json:"seconds"`
}

// A TooManyError says that more is lost than the parity replaces.
type TooManyError struct {
	Nodes    []string // directories
	Tolerate int
	Possible bool // the parity would replace them nevertheless
}

func (e *TooManyError) Error() string {
	if e.Possible {
		return fmt.Sprintf("%d nodes are lost, and the group tolerates the loss of %d: %s. Their data can be recovered nevertheless: --beyond does it",
			len(e.Nodes), e.Tolerate, strings.Join(e.Nodes, ", "))
	}
	return fmt.Sprintf("too much is lost: the group tolerates the loss of %d, and in some blocks these are lost, damaged or changed: %s",
		e.Tolerate, strings.Join(e.Nodes, ", "))
}

// Recover brings back what is lost or damaged at any node, as it was protected: files with
// their names, modes and times, parity and manifests. It writes nothing at a node that is
// whole, and no file before its SHA-256 is right. Of a file that has the length it had
// and another time, the content is kept in .volley/replaced; one of another length and
// time was changed on purpose: it stays, and counts as lost where others need it.
//
// It returns a *[TooManyError], at every rank, where more nodes are lost than the group
// tolerates, unless o.Beyond is set, or more than the parity replaces,
// and an [*InputError] for directories that are not those of a group; nothing has been
// written then. After an error, or the end of a process at any moment, calling it again
// completes it.
func Recover(ctx context.Context, t transport.Transport, dirs []string, o RecoverOptions) (*RecoverReport, error) {
	return run(ctx, t, func() (*RecoverReport, error) { return recoverGroup(ctx, t, dirs, o) })
}

func recoverGroup(ctx context.Context, t transport.Transport, dirs []string, o RecoverOptions) (*RecoverReport, error) {
	start := time.Now()
	s, err := begin(ctx, t, dirs, o.Options, false, fmt.Sprintf("recover, revert %v, beyond %v, dry run %v", o.Revert, o.Beyond, o.DryRun))
	if err != nil {
		return nil, err
	}
	if s.manifest == nil {
		return nil, s.alike(ctx, inputf("the group is not protected: no node has a manifest that counts"))
	}
	conditions, err := s.examineAll(ctx, false, o.Revert)
	if err != nil {
		return nil, err
	}
	r := &RecoverReport{Generation: s.generation}
	for n, c := range conditions {
		r.Nodes = append(r.Nodes, NodeReport{n, s.states[n].Dir, c.status(), c.Findings})
		for _, f := range c.Findings {
			if f.What == Changed && !o.Revert {
				r.Kept = append(r.Kept, filepath.Join(s.states[n].Dir, string(f.Path)))
			}
		}
	}
	for _, x := range s.states {
		r.Notes = append(r.Notes, x.Bad...)
	}
	repairs, err := s.planRepairs(conditions)
	if err != nil {
		return nil, s.alike(ctx, err)
	}
	few := &TooManyError{Tolerate: s.manifest.Tolerate, Possible: true}
	for n, c := range conditions {
		if c.Lost {
			few.Nodes = append(few.Nodes, s.name(n))
		}
	}
	if len(few.Nodes) > few.Tolerate && !o.Beyond {
		return nil, s.alike(ctx, few)
	}
	for _, x := range repairs {
		r.Blocks += len(x.blocks.rows)
	}
	if o.DryRun {
		return r, nil
	}
	targets := map[int]*target{}
	defer func() {
		for _, x := range targets {
			x.discard()
		}
	}()
	for _, n := range s.nodes {
		if c := conditions[n.index]; !c.whole() || len(s.states[n.index].Bad) > 0 {
			x, err := s.open(n, c)
			if err != nil {
				return nil, err
			}
			targets[n.index] = x
		}
	}
	if err := s.runRepairs(ctx, repairs, targets, &r.Traffic); err != nil {
		return nil, err
	}
	if err := s.here(func(_ int, n *node) error {
		if x := targets[n.index]; x != nil {
			return x.check()
		}
		return nil
	}); err != nil {
		return nil, err
	}
	// Everything that is to be written is there, at all nodes.
	if err := s.together(ctx); err != nil {
		return nil, err
	}
	type done struct {
		Files    int
		Replaced []string
	}
	var mine []done
	for _, n := range s.nodes {
		var d done
		if x := targets[n.index]; x != nil {
			if err := x.commit(); err != nil {
				return nil, err
			}
			d = done{len(x.files), x.replaced}
		}
		mine = append(mine, d)
	}
	all, err := exchange(ctx, s, mine)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		r.Files += d.Files
		r.Replaced = append(r.Replaced, d.Replaced...)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// blockRepair is a repair of the blocks in which the same symbols are bad.
type blockRepair struct {
	*repair
	blocks blocks
}

// planRepairs returns the repairs that bring everything back. Blocks of chunks in which the
// same is bad go together.
func (s *session) planRepairs(conditions []*condition) ([]blockRepair, error) {
	m := s.manifest
	c, err := m.code()
	if err != nil {
		return nil, err
	}
	type pattern struct {
		bad, wanted map[symbol]bool
		rows        []int
	}
	bad, wanted := make([]map[symbol]bool, m.rows()), make([]map[symbol]bool, m.rows())
	for row := range bad {
		bad[row], wanted[row] = map[symbol]bool{}, map[symbol]bool{}
	}
	mark := func(in []map[symbol]bool, lists [][]int, n int, parity bool) {
		for chunk, rows := range lists {
			for _, row := range rows {
				in[row][symbol{n, parity, chunk}] = true
			}
		}
	}
	for n, x := range conditions {
		mark(bad, x.Data, n, false)
		mark(bad, x.Parity, n, true)
		mark(wanted, x.Touched, n, false)
		mark(wanted, x.Parity, n, true)
	}
	patterns := map[string]*pattern{}
	var order []string
	for row := range bad {
		if len(wanted[row]) == 0 {
			continue
		}
		key := keyOf(bad[row]) + "|" + keyOf(wanted[row])
		if patterns[key] == nil {
			patterns[key] = &pattern{bad: bad[row], wanted: wanted[row]}
			order = append(order, key)
		}
		patterns[key].rows = append(patterns[key].rows, row)
	}
	var list []blockRepair
	blamed := map[int]bool{}
	for _, key := range order {
		p := patterns[key]
		r, err := c.repairing(p.bad, p.wanted, s.Ports)
		few := new(tooFewError)
		if errors.As(err, &few) {
			for _, x := range few.bad {
				blamed[x.node] = true
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, blockRepair{r, blocks{m, p.rows}})
	}
	if len(blamed) > 0 {
		e := &TooManyError{Tolerate: m.Tolerate}
		for n := range s.states {
			if blamed[n] {
				e.Nodes = append(e.Nodes, s.name(n))
			}
		}
		return nil, e
	}
	return list, nil
}

// keyOf returns the symbols as a text, in order.
func keyOf(set map[symbol]bool) string {
	var list []string
	for x := range set {
		list = append(list, fmt.Sprint(x))
	}
	sort.Strings(list)
	return strings.Join(list, ",")
}

// runRepairs runs repairs, one after the other.
func (s *session) runRepairs(ctx context.Context, list []blockRepair, targets map[int]*target, traffic *Traffic) error {
	m := s.manifest
	sources := map[int]*data{}
	parity := map[int]*os.File{}
	defer func() {
		for _, d := range sources {
			d.close()
		}
		for _, f := range parity {
			f.Close()
		}
	}()
	for _, n := range s.nodes {
		sources[n.index] = newData(n.root, m.Members[n.index].Entries, true)
		if f, err := os.Open(n.parity(s.generation)); err == nil {
			parity[n.index] = f
		}
	}
	for _, r := range list {
		var writers []*blockWriter
		var of []symbol
		t, err := s.repair(ctx, r.repair, r.blocks, func(x symbol) io.ReaderAt {
			if !x.parity {
				return &blockReader{r.blocks, sources[x.node], int64(x.index) * m.ChunkBytes}
			}
			return &blockReader{r.blocks, parity[x.node], int64(x.index) * m.ChunkBytes}
		}, func(x symbol) io.WriterAt {
			to := io.WriterAt(&targets[x.node].restored)
			if x.parity {
				to = targets[x.node].parity
			}
			w := newBlockWriter(r.blocks, to, int64(x.index)*m.ChunkBytes)
			writers, of = append(writers, w), append(of, x)
			return w
		})
		if err != nil {
			return err
		}
		for i, w := range writers {
			x := of[i]
			want := m.Members[x.node].Data
			if x.parity {
				want = m.Members[x.node].Parity
			}
			for _, row := range r.blocks.rows {
				if w.digests[row] != want[x.index*m.rows()+row] {
					return &WrongError{fmt.Sprintf("%s: what was recovered of block %d is not what was protected: data has changed meanwhile; run again", s.states[x.node].Dir, row)}
				}
			}
		}
		traffic.add(t)
	}
	return nil
}

// A WrongError says that something that was recovered is not what was protected. Nothing of
// it has been kept.
type WrongError struct{ what string }

func (e *WrongError) Error() string { return e.what }

// A target is a node that is written to. Everything lies under temporary names in its
// .volley until it is committed.
type target struct {
	s      *session
	node   *node
	member *Member
	restored
	others   []int    // entries that are no files
	parity   *os.File // nil: it is right as it is
	lost     bool
	made     bool     // the directory
	rest     []string // temporary files
	replaced []string
}

// restored are the files of a node that come back, and take their parts of its data.
type restored struct {
	files     []Entry
	temporary map[Name]string // where they lie until then
	extents
}

// WriteAt writes a part of the node's data into the files it is of.
func (r *restored) WriteAt(p []byte, offset int64) (int, error) {
	err := r.overlapping(offset, int64(len(p)), func(_ int, e *Entry, from, to int64) error {
		f, err := os.OpenFile(r.temporary[e.Path], os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(p[from-offset:to-offset], from-e.Offset)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// open prepares what comes back at a node: files of the right length, with the parts that
// are there still.
func (s *session) open(n *node, c *condition) (*target, error) {
	m := s.manifest
	x := &target{s: s, node: n, member: &m.Members[n.index], restored: restored{temporary: map[Name]string{}}, lost: c.Lost}
	_, err := os.Lstat(n.root)
	x.made = errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(n.meta(""), 0o777); err != nil {
		return nil, err
	}
	if err := n.clean(s.generation); err != nil {
		return nil, err
	}
	for i, at := range c.restore {
		e := x.member.Entries[at]
		if e.Type != typeFile {
			x.others = append(x.others, at)
			continue
		}
		if there, err := os.Lstat(n.path(e.Path)); err == nil && there.IsDir() {
			return nil, inputf("%s is a directory, and was a file when it was protected: move it away", n.path(e.Path))
		}
		name := n.meta(fmt.Sprint(temporary, i))
		x.files, x.temporary[e.Path] = append(x.files, e), name
		x.rest = append(x.rest, name)
		if err := create(name, e.Size); err != nil {
			return nil, err
		}
	}
	x.extents = extentsOf(x.files)
	if c.parity {
		name := n.meta(temporary + "parity")
		x.rest = append(x.rest, name)
		if err := create(name, int64(m.ParityChunks)*m.ChunkBytes); err != nil {
			return nil, err
		}
		var err error
		if x.parity, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
			return nil, err
		}
	}
	return x, x.copyGood(c)
}

func create(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// copyGood copies the blocks that are right into what comes back.
func (x *target) copyGood(c *condition) error {
	d := newData(x.node.root, x.member.Entries, true)
	defer d.close()
	if err := x.copy(&x.restored, d, c.Data, x.any); err != nil || x.parity == nil {
		return err
	}
	old, err := x.node.openParity(x.s.generation)
	if err != nil {
		return nil // all of it comes back
	}
	defer old.Close()
	return x.copy(x.parity, old, c.Parity, func(int64, int64) bool { return true })
}

// copy copies the blocks of chunks that are not bad, and wanted.
func (x *target) copy(to io.WriterAt, from io.ReaderAt, bad [][]int, wanted func(offset, n int64) bool) error {
	m := x.s.manifest
	buffer := make([]byte, m.BlockBytes)
	for chunk, rows := range bad {
		for row := range m.rows() {
			at, n := m.block(row)
			at += int64(chunk) * m.ChunkBytes
			if _, is := slices.BinarySearch(rows, row); is || !wanted(at, n) {
				continue
			}
			if _, err := from.ReadAt(buffer[:n], at); err != nil {
				return err
			}
			if _, err := to.WriteAt(buffer[:n], at); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares all files that come back with their digests, and makes them last.
func (x *target) check() error {
	for _, f := range x.files {
		got, err := digestOf(x.temporary[f.Path])
		if err != nil {
			return err
		}
		if got != f.SHA256 {
			return &WrongError{fmt.Sprintf("%s: what was recovered is not what was protected: data has changed meanwhile; run again", x.node.path(f.Path))}
		}
	}
	if x.parity != nil {
		return x.parity.Sync()
	}
	return nil
}

// digestOf returns the SHA-256 of a file, which is on the disk then.
func digestOf(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), f.Sync()
}

// commit gives everything its name: directories and files, links, the parity, and at last
// the manifest.
func (x *target) commit() error {
	n := x.node
	type dirTime struct {
		path string
		at   time.Time
	}
	var touched []dirTime // directories that were right, and whose time a file in them changes
	remember := func(path string) {
		if info, err := os.Lstat(path); err == nil {
			touched = append(touched, dirTime{path, info.ModTime()})
		}
	}
	for _, f := range x.files {
		remember(filepath.Dir(n.path(f.Path)))
	}
	for _, i := range x.others {
		e := &x.member.Entries[i]
		if e.Type == typeDir {
			remember(filepath.Dir(n.path(e.Path)))
			if err := os.MkdirAll(n.path(e.Path), 0o777); err != nil {
				return err
			}
		}
	}
	for _, f := range x.files {
		path := n.path(f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := x.setAside(path, &f); err != nil {
			return err
		}
		if err := setTimes(x.temporary[f.Path], &f); err != nil {
			return err
		}
		if err := os.Rename(x.temporary[f.Path], path); err != nil {
			return err
		}
		if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	for _, i := range x.others {
		e := &x.member.Entries[i]
		if e.Type != typeSymlink {
			continue
		}
		path := n.path(e.Path)
		remember(filepath.Dir(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := x.setAside(path, e); err != nil {
			return err
		}
		if err := os.Symlink(string(e.Target), path); err != nil {
			return err
		}
		if err := setTimes(path, e); err != nil {
			return err
		}
	}
	g := x.s.generation
	if x.parity != nil {
		if err := x.parity.Close(); err != nil {
			return err
		}
		if err := os.Rename(x.parity.Name(), n.parity(g)); err != nil {
			return err
		}
		x.parity = nil
	}
	if err := n.identify(x.s.manifest.Group); err != nil {
		return err
	}
	for _, d := range touched {
		os.Chtimes(d.path, d.at, d.at)
	}
	// Directories that were lost: the innermost first, as each changes the time of its own.
	for _, i := range slices.Backward(x.others) {
		if e := &x.member.Entries[i]; e.Type == typeDir {
			if err := setTimes(n.path(e.Path), e); err != nil {
				return err
			}
		}
	}
	if x.lost {
		for i := range x.member.Entries {
			if e := &x.member.Entries[i]; e.Path == "." {
				if err := setTimes(n.root, e); err != nil {
					return err
				}
			}
		}
	}
	if text, err := os.ReadFile(n.manifest(g)); err != nil || sum(text) != sum(x.s.text) {
		if err := atomicfile.Write(n.manifest(g), x.s.text); err != nil {
			return err
		}
	}
	x.rest = nil
	return n.sync()
}

// setAside moves what has the name of an entry away, if it was written to since.
func (x *target) setAside(path string, e *Entry) error {
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if there.ModTime().UnixNano() == e.MTime && e.Type == typeFile {
		return nil // it goes when the file takes its name
	}
	to := filepath.Join(x.node.meta(replacedName), fmt.Sprint(x.s.generation), filepath.FromSlash(string(e.Path)))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if e.Type == typeFile { // the name is never without a file
		os.Remove(to)
		if err := os.Link(path, to); err == nil {
			x.replaced = append(x.replaced, to)
			return nil
		}
	}
	if err := os.Rename(path, to); err != nil {
		return err
	}
	x.replaced = append(x.replaced, to)
	return nil
}

// discard removes what was not committed.
func (x *target) discard() {
	if x.parity != nil {
		x.parity.Close()
	}
	for _, path := range x.rest {
		os.Remove(path)
	}
	if x.rest != nil && x.lost {
		os.Remove(x.node.meta("")) // fails, as it should, where something lies in them
		if x.made {
			os.Remove(x.node.root)
		}
	}
}
