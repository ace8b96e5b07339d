package group

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"volley/internal/disk"
)

func joinPath(dir string, p Name) string { return filepath.Join(dir, filepath.FromSlash(string(p))) }

// A target is a node that is written to. Everything lies under temporary names in its .volley
// until it is committed.
type target struct {
	s         *session
	node      *node
	member    *Member
	condition *condition
	own       map[Name]touch
	sums      *sums           // of the member
	files     []Entry         // that come back
	stage     disk.Dir        // in which everything that comes back is made
	temporary map[Name]string // where the files lie in it until then
	made      map[Name]string // where directories do
	handles   handles[Name]
	extents             // of files
	others    []int     // entries that come back and are no files
	parity    disk.File // nil: it is right as it is
	left      []string  // what could not get its name
	placed    int       // files that could
	replaced  []string
	notes     []string
	unset     map[string][]Name // what of entries could not be set
	journal   recovering
}

// recovering is what is to be finished at a node when its files have their names: directories
// that get their modes and times, in which files were written. It is in the node's .volley
// from before the first of them changes until they are right, so that a run that follows
// knows of it.
type recovering struct {
	Generation  int64    `json:"generation"`
	Directories []opened `json:"directories"`
}

// An opened directory is known by its inode: another one that has its name meanwhile stays as it
// is.
type opened struct {
	Entry
	Inode uint64 `json:"inode,omitempty"` // 0: not known
}

// target prepares what comes back at a node: files of the right length, with the parts that
// are there still. It returns what cannot come back, as something is in its way.
func (s *session) target(ctx context.Context, n *node, c *condition) (x *target, blocked []string, err error) {
	m := s.manifest
	x = &target{s: s, node: n, member: s.members[n.index], condition: c, temporary: map[Name]string{}, made: map[Name]string{}}
	if x.stage, err = n.stage(); err != nil {
		return x, nil, err
	}
	x.own = n.readTouches(s.generation, x.member)
	x.sums = newSums(m, extentsOf(x.member.Entries))
	coming := map[Name]bool{}
	for _, i := range c.restore {
		coming[x.member.Entries[i].Path] = true
	}
	stay := map[Name]bool{}
	for i, at := range c.restore {
		e := x.member.Entries[at]
		if err := x.blocked(&e, coming); err != nil {
			blocked = append(blocked, err.Error())
			stay[e.Path] = true
			continue
		}
		if e.Type != typeFile {
			x.others = append(x.others, at)
			continue
		}
		name := fmt.Sprint(i)
		x.files, x.temporary[e.Path] = append(x.files, e), name
		f, err := x.create(name, e.Size)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return x, nil, err
		}
	}
	x.others = slices.DeleteFunc(x.others, func(at int) bool {
		e := &x.member.Entries[at]
		if e.Type == typeLink && stay[e.Target] {
			blocked = append(blocked, x.otherName(e))
			return true
		}
		return false
	})
	x.extents = extentsOf(x.files)
	if c.parity {
		if x.parity, err = x.create("parity", m.parityBytes()); err != nil {
			return x, nil, err
		}
	}
	return x, blocked, x.copyGood(ctx)
}

// otherName says why a name does not come back: its file does not.
func (x *target) otherName(e *Entry) string {
	return fmt.Sprintf("%s: it is another name of %s", x.node.path(e.Path), x.node.path(e.Target))
}

// blocked returns an error where something is in the way of an entry: above it what is no
// directory, or in its place a directory.
func (x *target) blocked(e *Entry, coming map[Name]bool) error {
	for up := path.Dir(string(e.Path)); up != "."; up = path.Dir(up) {
		info, err := x.node.dir.Lstat(up)
		if err == nil && !info.IsDir() && !coming[Name(up)] {
			return fmt.Errorf("%s: %s is no directory any more: move it away", x.node.path(e.Path), x.node.path(Name(up)))
		}
	}
	if info, err := x.node.dir.Lstat(string(e.Path)); err == nil && info.IsDir() && e.Type != typeDir {
		return fmt.Errorf("%s is a directory, and was a %s when it was protected: move it away", x.node.path(e.Path), e.Type)
	}
	return nil
}

// stage makes a directory that nobody else may write to, wherever the node lies: what is made
// in it gets its owner, mode and attributes there, and is nobody else's file. Its path is for
// giving that its name.
func (n *node) stage() (disk.Dir, error) {
	if err := n.dir.Mkdir(metaPath(stageName), 0o700); err != nil {
		return nil, err
	}
	dir, err := n.dir.Sub(metaPath(stageName))
	if err != nil {
		return nil, err
	}
	const probe = "mine"
	f, err := dir.OpenFile(probe, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		mine, err1 := f.Stat()
		is, err2 := dir.Lstat(".")
		err = errors.Join(err1, err2, f.Close(), dir.Remove(probe))
		// A file system without modes shows the same of all files.
		if err == nil && (!sameOwner(mine, is) || is.Mode().Perm()&0o022 != 0 && mine.Mode().Perm()&0o022 == 0) {
			err = fmt.Errorf("%s: others can write to it, or have replaced it", n.path(Name(metaPath(stageName))))
		}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// sameOwner reports whether two files are one user's.
func sameOwner(a, b fs.FileInfo) bool {
	uid, _, _ := disk.Owner(a)
	other, _, _ := disk.Owner(b)
	return uid == other
}

// staged returns the path of what was made.
func staged(name string) string { return metaPath(stageName + "/" + name) }

// create makes a file of that length.
func (x *target) create(name string, size int64) (disk.File, error) {
	f, err := x.stage.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// copyGood copies what is right into what comes back.
func (x *target) copyGood(ctx context.Context) error {
	m := x.s.manifest
	d := newData(x.node.dir, x.member.Entries, true)
	defer d.close()
	for i, g := range x.sums.list {
		file := &x.sums.files[g.file]
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
		if m.Version > 1 && !sameDigest(part, x.member.Segments, i) {
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
		if slices.ContainsFunc(x.condition.Parity, func(bad []int) bool { return len(bad) < m.rows() }) {
			return err // a part of it was there
		}
		return nil
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

// put takes a block that was recovered, or is right: it is compared with its digests, and
// written where it is of what comes back.
func (x *target) put(of symbol, row int, block []byte) error {
	m := x.s.manifest
	if of.parity {
		if !m.sameParity(x.member, row, of.index, block) {
			return &WrongError{fmt.Sprintf("%s: what was recovered of its parity is not what was protected: data has changed meanwhile; run again", x.node.given)}
		}
		if x.parity == nil {
			return nil // it stays as it is
		}
		_, err := x.parity.WriteAt(block, m.place(row, of.index, m.ParityChunks))
		return err
	}
	at := m.place(row, of.index, m.DataChunks)
	if m.Version == 1 {
		if !sameDigest(block, x.member.blocks, m.number(row, of.index, m.DataChunks)) {
			return wrongFile(x.node.given)
		}
	} else {
		first, _ := slices.BinarySearchFunc(x.sums.list, at, func(g segment, at int64) int {
			if g.at < at {
				return -1
			}
			return 1
		})
		for i := first; i < len(x.sums.list) && x.sums.list[i].at < at+int64(len(block)); i++ {
			g := x.sums.list[i]
			if !sameDigest(block[g.at-at:][:g.n], x.member.Segments, i) {
				return wrongFile(x.node.path(x.sums.files[g.file].Path))
			}
		}
	}
	return x.write(block, at)
}

// write writes a part of the node's data into the files that come back.
func (x *target) write(p []byte, at int64) error {
	return x.overlapping(at, int64(len(p)), func(_ int, e *Entry, from, to int64) error {
		f, err := x.file(e.Path)
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

// file opens a file that comes back.
func (x *target) file(p Name) (disk.File, error) {
	return x.handles.get(p, func() (disk.File, error) { return x.stage.OpenFile(x.temporary[p], os.O_RDWR, 0) })
}

// finish gives all files that come back their modes and times, and makes them last.
func (x *target) finish() error {
	x.handles.close()
	for i := range x.files {
		e := &x.files[i]
		name := x.temporary[e.Path]
		f, err := x.stage.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if x.s.manifest.Version == 1 {
			h := sha256.New()
			if _, err = io.Copy(h, f); err == nil && hex.EncodeToString(h.Sum(nil)) != e.SHA256 {
				err = wrongFile(x.node.path(e.Path))
			}
		}
		if err == nil {
			err = x.setMeta(x.stage, name, e)
		}
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if x.parity != nil {
		return x.parity.Sync()
	}
	return nil
}

// commit gives everything its name: directories, files and links, the parity, and at last
// the manifest.
func (x *target) commit() error {
	if err := x.begin(); err != nil {
		return err
	}
	synced := map[string]bool{} // directories in which there are new names
	for _, i := range x.others {
		e := &x.member.Entries[i]
		if x.made[e.Path] == "" {
			continue
		}
		if err := x.place(x.made[e.Path], e, synced); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	before := len(x.left)
	for i := range x.files {
		e := &x.files[i]
		if err := x.place(x.temporary[e.Path], e, synced); err != nil {
			return err
		}
	}
	x.placed = len(x.files) - (len(x.left) - before)
	if err := x.commitLinks(synced); err != nil {
		return err
	}
	if err := x.commitSymlinks(synced); err != nil {
		return err
	}
	if err := x.end(synced); err != nil {
		return err
	}
	return x.commitMeta()
}

// place gives what was made its name. Where there cannot be such a name, that holds up nothing
// else.
func (x *target) place(made string, e *Entry, synced map[string]bool) error {
	err := x.setAside(e)
	if err == nil {
		err = x.node.dir.Rename(staged(made), string(e.Path))
	}
	switch {
	case errors.Is(err, syscall.EXDEV):
		err = fmt.Errorf("%s: another file system is mounted there: unmount it, and recover again", x.node.path(e.Path))
		fallthrough
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		x.left = append(x.left, err.Error())
		return nil
	case err == nil:
		synced[path.Dir(string(e.Path))] = true
	}
	return err
}

// commitLinks gives files their other names.
func (x *target) commitLinks(synced map[string]bool) error {
	for _, i := range x.others {
		e := &x.member.Entries[i]
		if e.Type != typeLink {
			continue
		}
		name := fmt.Sprint("name-", i)
		if err := x.node.dir.Link(string(e.Target), staged(name)); errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrNotExist) {
			x.left = append(x.left, x.otherName(e))
			continue
		} else if err != nil {
			return err
		}
		if err := x.place(name, e, synced); err != nil {
			return err
		}
	}
	return nil
}

// setMeta gives what comes back its owner, mode, attributes and time.
func (x *target) setMeta(dir disk.Dir, name string, e *Entry) error {
	unset, err := setMeta(dir, name, e)
	for _, what := range unset {
		if x.unset == nil {
			x.unset = map[string][]Name{}
		}
		x.unset[what] = append(x.unset[what], e.Path)
	}
	return err
}

// notSet says what of files this process could not bring back.
func (x *target) notSet() []string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(x.unset)) {
		paths := x.unset[what]
		text := fmt.Sprintf("%s: %s not restored, as this user may not", x.node.path(paths[0]), what)
		if len(paths) > 1 {
			text = fmt.Sprintf("%s and %d more: %s not restored, as this user may not", x.node.path(paths[0]), len(paths)-1, what)
		}
		list = append(list, text)
	}
	return list
}

// commitSymlinks gives symbolic links their names. They are made last before, with their times.
func (x *target) commitSymlinks(synced map[string]bool) error {
	n := x.node
	links := map[string]*Entry{}
	for _, i := range x.others {
		if e := &x.member.Entries[i]; e.Type == typeSymlink {
			name := fmt.Sprint("link-", i)
			links[name] = e
			if err := x.stage.Symlink(string(e.Target), name); err != nil {
				return err
			}
			if err := x.setMeta(x.stage, name, e); err != nil {
				return err
			}
		}
	}
	if len(links) == 0 {
		return nil
	}
	if err := n.dir.SyncAll(); err != nil {
		return err
	}
	for name, e := range links {
		if err := x.place(name, e, synced); err != nil {
			return err
		}
	}
	return nil
}

// begin notes which directories will be written in, and opens them for that. Those of a run
// that did not end keep what that has noted.
func (x *target) begin() error {
	n := x.node
	x.journal.Generation = x.s.generation
	noted := map[Name]bool{}
	note := func(e Entry, info fs.FileInfo) {
		if !noted[e.Path] {
			noted[e.Path] = true
			x.journal.Directories = append(x.journal.Directories, opened{e, touchOf(info).Inode})
		}
	}
	for _, i := range x.others {
		e := x.member.Entries[i]
		if e.Type != typeDir || e.Path == "." {
			continue
		}
		if info, err := n.dir.Lstat(string(e.Path)); err == nil && info.IsDir() { // it could not be read
			note(e, info)
			continue
		}
		name := fmt.Sprint("dir-", i)
		if err := x.stage.Mkdir(name, 0o700); err != nil {
			return err
		}
		info, err := x.stage.Lstat(name)
		if err != nil {
			return err
		}
		x.made[e.Path] = name
		note(e, info)
	}
	if u := x.condition.unfinished; u != nil && u.Generation == x.s.generation {
		for _, e := range u.Directories {
			if !noted[e.Path] {
				noted[e.Path] = true
				x.journal.Directories = append(x.journal.Directories, e)
			}
		}
	}
	var within []Name
	for _, i := range x.others {
		e := &x.member.Entries[i]
		if info, err := n.dir.Lstat("."); e.Path == "." && err == nil {
			note(*e, info)
		}
		within = append(within, Name(path.Dir(string(e.Path))))
	}
	for _, e := range x.files {
		within = append(within, Name(path.Dir(string(e.Path))))
	}
	slices.Sort(within)
	as := x.undisturbed()
	var locked []opened
	for _, p := range slices.Compact(within) {
		info, err := n.dir.Lstat(string(p))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
			continue // it comes back itself
		}
		if err != nil {
			return err
		}
		e, err := entryOf(n.dir, string(p), info)
		if err != nil {
			return err
		}
		if !noted[p] {
			if was := as[p]; was != nil {
				e.Seconds, e.Nanoseconds = was.Seconds, was.Nanoseconds
			}
			note(e, info)
		}
		if e.Mode&0o300 != 0o300 {
			locked = append(locked, opened{e, touchOf(info).Inode})
		}
	}
	if len(x.journal.Directories) == 0 {
		return n.identify(x.s.manifest.Group)
	}
	text, err := json.Marshal(x.journal)
	if err != nil {
		return err
	}
	if err := n.write(recoveringFile, seal(text)); err != nil {
		return err
	}
	if err := n.identify(x.s.manifest.Group); err != nil {
		return err
	}
	for i := range locked {
		if err := n.opened(&locked[i], func(dir disk.Dir) error { return dir.Chmod(".", 0o700) }); err != nil {
			return err
		}
	}
	return nil
}

// opened calls f with a directory, unless another has its name now.
func (n *node) opened(e *opened, f func(disk.Dir) error) error {
	dir, err := n.dir.Sub(string(e.Path))
	if err != nil {
		return err
	}
	info, err := dir.Lstat(".")
	if err == nil && (e.Inode == 0 || e.Inode == touchOf(info).Inode) {
		err = f(dir)
	}
	return errors.Join(err, dir.Close())
}

// undisturbed returns the directories, as they were protected, in which no file is new or
// changed: when files have come back they get the time that they had.
func (x *target) undisturbed() map[Name]*Entry {
	was := map[Name]*Entry{}
	for i := range x.member.Entries {
		if e := &x.member.Entries[i]; e.Type == typeDir {
			was[e.Path] = e
		}
	}
	for _, f := range x.condition.Findings {
		if f.What == New || f.What == Changed {
			delete(was, Name(path.Dir(string(f.Path))))
		}
	}
	return was
}

// end makes new names last, and gives directories their modes and times, those inside before
// those that they lie in.
func (x *target) end(synced map[string]bool) error {
	n := x.node
	slices.SortFunc(x.journal.Directories, func(a, b opened) int { return bytes.Compare([]byte(b.Path), []byte(a.Path)) })
	for i := range x.journal.Directories {
		e := &x.journal.Directories[i]
		switch err := n.opened(e, func(dir disk.Dir) error { return x.setMeta(dir, ".", &e.Entry) }); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue // somebody has removed it
		case errors.Is(err, fs.ErrPermission): // it is another user's, as where a disk is mounted
			x.notes = append(x.notes, fmt.Sprintf("%s: mode and time cannot be set, as it is another user's", n.path(e.Path)))
		case err != nil:
			return err
		}
		synced[string(e.Path)] = true
	}
	for name := range synced {
		if err := n.dir.SyncDir(name); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// commitMeta puts what is Volley's in place.
func (x *target) commitMeta() error {
	n, g := x.node, x.s.generation
	if x.parity != nil {
		err := x.parity.Close()
		x.parity = nil
		if err != nil {
			return err
		}
		if err := n.dir.Rename(staged("parity"), parityPath(g)); err != nil {
			return err
		}
	}
	for i, text := range x.s.records[n.index] {
		if err := n.store(g, i, text); err != nil {
			return err
		}
	}
	if text, err := disk.ReadText(n.dir, manifestPath(g), int64(len(x.s.text))); err != nil || sum(text) != x.s.root {
		if err := n.write(fmt.Sprint(manifestName, g, ".json"), x.s.text); err != nil {
			return err
		}
	}
	if err := disk.Discard(n.dir, metaPath(recoveringFile)); err != nil {
		return err
	}
	if err := x.unstage(); err != nil {
		return err
	}
	return n.sync()
}

// setAside keeps what has the name of an entry, unless it is certain that nobody has written
// it. Earlier copies stay.
func (x *target) setAside(e *Entry) error {
	n := x.node
	name := string(e.Path)
	there, err := n.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && there.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	if x.rotten(e) {
		return nil // it goes when the file takes its name
	}
	base := path.Join(metaName, replacedName, fmt.Sprint(x.s.generation), name)
	to := base
	for i := 1; ; i++ {
		if _, err := n.dir.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = fmt.Sprint(base, ".", i)
	}
	if err := disk.MkdirAll(n.dir, path.Dir(to), 0o700); err != nil {
		return err
	}
	x.replaced = append(x.replaced, n.path(Name(to)))
	// The name is never without a file, where the file system has links.
	if e.Type == typeFile && there.Mode().IsRegular() && n.dir.Link(name, to) == nil {
		return n.dir.SyncDir(path.Dir(to))
	}
	if err := n.dir.Rename(name, to); err != nil {
		return err
	}
	return n.dir.SyncDir(path.Dir(to))
}

// rotten reports whether nobody has written to a file since it was protected, or recovered.
func (x *target) rotten(e *Entry) bool {
	l := x.condition.listing
	if l == nil || e.Type != typeFile && e.Type != typeLink || l.find(e.Path) < 0 {
		return false
	}
	file := e.Path
	if e.Type == typeLink {
		file = e.Target
	}
	was, ok := x.own[file]
	return ok && was.Inode != 0 && was == l.touches[l.find(e.Path)]
}

// discard removes what was not committed.
func (x *target) discard() {
	x.handles.close()
	if x.parity != nil {
		x.parity.Close()
	}
	x.unstage() // what is left the next run removes
}

// unstage removes the directory in which everything was made.
func (x *target) unstage() error {
	if x.stage == nil {
		return nil
	}
	defer func() {
		x.stage.Close()
		x.stage = nil
	}()
	entries, err := x.stage.ReadDir(".")
	for _, e := range entries {
		err = errors.Join(err, x.stage.Remove(e.Name()))
	}
	return errors.Join(err, x.node.dir.Remove(metaPath(stageName)))
}
