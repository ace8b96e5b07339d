package restore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Commit puts the generation in force at the node, and names what comes back. The manifest is last.
func (x *Target) Commit() error {
	if err := x.node.RollForward(x.origin.Generation, x.origin.Root); err != nil {
		return err
	}
	if x.node.Keep(); x.base == nil {
		return nil
	}
	if err := x.openDirs(); err != nil {
		return err
	}
	for _, dirs := range []bool{true, false} { // these first: names of a file may lie anywhere
		for _, f := range x.entries {
			if f.staged != "" && (f.Type == tree.TypeDir) == dirs {
				x.commitNames(f)
			}
		}
	}
	x.removeBeside()
	x.closeDirs()
	return x.commitMeta()
}

// giveName gives a staged entry its name, and reports whether it has it. An entry that cannot get its name is noted.
func (x *Target) giveName(f *regained, p tree.Name, stagedName string) bool {
	if x.inFailedDir(p) {
		return false
	}
	err := x.assignName(f.Entry, p, x.stage.entry(stagedName))
	if errors.Is(err, syscall.EXDEV) {
		err = errors.New("it is on another file system than the node's directory, and nothing is made there: copy it out")
	}
	if err != nil {
		x.noteFailed(f.Entry, p, err)
		return false
	}
	x.synced[path.Dir(string(p))] = true
	return true
}

// assignName gives the source the name of an entry. What had the name is kept. A program may take the name at any time,
// and what it put there is kept, too.
func (x *Target) assignName(e *tree.Entry, p tree.Name, source string) (err error) {
	var kept fs.FileInfo // what had the name last
	for range mostPuts {
		var existing fs.FileInfo
		existing, err = x.node.Dir.Lstat(string(p))
		if errors.Is(err, fs.ErrNotExist) {
			if err = x.claimFreeName(e, p, source); errors.Is(err, fs.ErrExist) {
				continue
			}
			return err
		}
		if err == nil && kept != nil && disk.Inode(existing) == disk.Inode(kept) { // it has another name by now
			return x.node.Dir.Rename(source, string(p))
		}
		if err == nil {
			err = x.checkNameFree(p, existing)
		}
		switch {
		case err != nil:
			return err
		case existing.IsDir() && e.Type == tree.TypeDir: // somebody has made it meanwhile
			return nil
		case existing.IsDir():
			return x.node.Dir.Rename(source, string(p)) // a rename replaces no directory
		}
		named := false
		if named, err = x.keepReplaced(e, p, source, existing); named || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			kept = existing
		}
	}
	return cmp.Or(err, errors.New("another program writes it all the time"))
}

// mostPuts is how often a name may be given to something else meanwhile.
const mostPuts = 10

// claimFreeName gives the source a name that nothing has. Where the file system has links, it replaces nothing that has
// taken the name meanwhile.
func (x *Target) claimFreeName(e *tree.Entry, p tree.Name, source string) error {
	if e.Type == tree.TypeDir { // a rename of a directory replaces nothing
		return x.node.Dir.Rename(source, string(p))
	}
	err := x.node.Dir.Link(source, string(p))
	switch {
	case err == nil:
		x.node.Dir.Remove(source) // if this fails, unstage says so
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EXDEV):
		return err
	}
	return x.node.Dir.Rename(source, string(p))
}

// commitNames gives an entry its names. Further ones of a file are made before the first, from the staged file, as links
// or copies.
func (x *Target) commitNames(f *regained) {
	for i, p := range slices.Backward(f.names) {
		name := f.staged
		if i > 0 {
			name = fmt.Sprint(f.staged, "-", i)
			if x.node.Dir.Link(x.stage.entry(f.staged), x.stage.entry(name)) != nil { // the file system has no links, or no more of this file
				if err := x.copy(f, name); err != nil {
					x.noteFailed(f.Entry, p, err)
					continue
				}
			}
		}
		if !x.giveName(f, p, name) {
			continue
		}
		if i > 0 || f.linked || f.Type != tree.TypeFile {
			x.Recovered.NonFiles++
		} else {
			x.Recovered.Files++
		}
	}
}

// link links a file into the stage, and reports whether it is still the file that was seen.
func (x *Target) link(entry *tree.Entry, name string) bool {
	if x.node.Dir.Link(string(entry.Path), x.stage.entry(name)) != nil {
		return false
	}
	info, err := x.stage.Lstat(name)
	if err != nil || !entry.Still(info) {
		x.stage.Remove(name)
		return false
	}
	return true
}

// copy makes a copy of a file in the stage, which lasts.
func (x *Target) copy(f *regained, name string) error {
	source, err := x.stage.OpenFile(f.staged, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := createIn(x.stage, name, f.Size)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for offset := int64(0); err == nil && offset < f.Size; offset += int64(len(block)) {
		block = block[:min(int64(len(block)), f.Size-offset)]
		if _, err = source.ReadAt(block, offset); err == nil && !(f.Sparse && disk.Zeros(block)) {
			_, err = target.WriteAt(block, offset)
		}
	}
	if err == nil {
		err = cmp.Or(x.setMeta(x.stage, name, f.Entry), target.Sync())
	}
	if err = cmp.Or(err, target.Close()); err != nil {
		x.stage.Remove(name)
	}
	return err
}

func (x *Target) setMeta(dir disk.Dir, name string, e *tree.Entry) error {
	unset, err := tree.SetMeta(dir, name, e)
	for _, property := range unset {
		x.unset[property] = append(x.unset[property], e.Path)
	}
	return err
}

// UnsetNotes returns notes on metadata that this process could not restore.
func (x *Target) UnsetNotes() []string {
	var list []string
	for _, property := range slices.Sorted(maps.Keys(x.unset)) {
		paths := x.unset[property]
		text := fmt.Sprintf("%s: %s", x.node.Path(paths[0]), property)
		if len(paths) > 1 {
			text = fmt.Sprintf("%s and %d more: %s", x.node.Path(paths[0]), len(paths)-1, property)
		}
		list = append(list, text)
	}
	return list
}

// behind reports whether a file may still be as in an earlier generation: the node does not say yet that it is at this
// one, or nobody could tell such a file from one that was changed.
func (x *Target) behind() bool {
	return len(x.Unfinished) > 0 && slices.ContainsFunc(x.condition.Findings, func(f protection.Finding) bool { return f.Kind == content.Stale })
}

func (x *Target) commitMeta() error {
	n, g := x.node, x.origin.Generation
	remade := x.parity != nil
	if err := x.closeParity(); err != nil {
		return err
	}
	if x.behind() || x.entriesOnly { // a node that is behind gets its metadata from a later run
		return cmp.Or(x.unstage(), n.Sync())
	}
	dir, err := n.GenerationDir(g, x.origin.Root)
	if err != nil {
		return err
	}
	if remade {
		if err := n.PutParity(dir, x.base.entry(parityName)); err != nil {
			return err
		}
		x.Recovered.Parity = x.origin.Manifest.ParityBytes()
	}
	x.Recovered.Records = len(x.records) > 0
	for _, name := range slices.Sorted(maps.Keys(x.records)) {
		if err := n.WriteFile(dir, name, x.records[name]); err != nil {
			return err
		}
	}
	written, err := n.Complement(dir, x.origin.Manifest, x.origin.Text)
	if err != nil {
		return err
	}
	x.Recovered.Records = x.Recovered.Records || written
	if err := n.RollForward(g, x.origin.Root); err != nil {
		return err
	}
	if err := x.unstage(); err != nil {
		return err
	}
	return n.Sync()
}

// An openedDir is a directory that recover writes in, and the mode and time that it gets at the end. It is known by
// its inode: another one that has its name meanwhile stays as it is.
type openedDir struct {
	tree.Entry
	inode uint64 // 0: not known
}

// unsettled is the problem of a directory whose mode and time may not last, or be those of others.
const unsettled = ": its mode and time are not restored"

// openDirs makes what comes back and is no file, and opens the directories in which entries come back.
func (x *Target) openDirs() error {
	n := x.node
	x.noteDisturbed()
	parents := map[tree.Name]bool{".": x.stage != x.base} // directories in which something comes back, or was made
	links := false
	for i, f := range x.entries {
		for _, p := range f.names {
			parents[content.Parent(p)] = true
		}
		if f.Type != tree.TypeFile {
			x.startNonFile(f, fmt.Sprint(i))
		}
		links = links || f.Type == tree.TypeSymlink
	}
	locked := x.openRecorded(parents)
	last := cmp.Or(n.Sync(), n.Dir.SyncDir(".")) // so that the stage lasts
	if last == nil && links {
		last = n.Dir.SyncAll()
	}
	if last != nil {
		return last
	}
	for _, e := range locked {
		if err := inOpened(n, e, func(dir disk.Dir) error { return dir.Chmod(".", tree.FileMode(e.Mode|0o700)) }); err != nil {
			x.noteUnfinished(e.Path, unsettled, err)
		}
	}
	return nil
}

// startNonFile makes a directory or symbolic link in the stage. A directory that is there gets its metadata.
func (x *Target) startNonFile(f *regained, name string) {
	if x.inFailedDir(f.Path) {
		return
	}
	info, err := x.node.Dir.Lstat(string(f.Path))
	if f.Type == tree.TypeDir && err == nil && info.IsDir() { // the node's own, or it could not be read
		x.opened[f.Path] = &openedDir{*f.Entry, disk.Inode(info)}
		inOpened(x.node, x.opened[f.Path], func(dir disk.Dir) error { // closeDirs repeats it, or notes the error
			_, err := tree.SetMeta(dir, ".", withOwnerAccess(f.Entry))
			return err
		})
		return
	}
	if err := x.makeNonFile(name, f.Entry); err != nil {
		x.noteFailed(f.Entry, f.Path, err)
		return
	}
	f.staged = name
}

// makeNonFile makes a directory or symbolic link in the stage. Mode and owner of a directory last before its name does.
func (x *Target) makeNonFile(name string, e *tree.Entry) error {
	stage := x.stage
	if e.Type == tree.TypeSymlink {
		if err := stage.Symlink(string(e.Target), name); err != nil {
			return err
		}
		return x.setMeta(stage, name, e)
	}
	if err := stage.Mkdir(name, 0o700); err != nil {
		return err
	}
	info, err := stage.Lstat(name)
	if err != nil {
		return err
	}
	opened := &openedDir{*e, disk.Inode(info)}
	if x.disturbed[e.Path] {
		opened.Seconds, opened.Nanoseconds = info.ModTime().Unix(), int64(info.ModTime().Nanosecond())
	}
	x.opened[e.Path] = opened
	if _, err := tree.SetMeta(stage, name, withOwnerAccess(&opened.Entry)); err != nil {
		return err
	}
	return stage.SyncDir(name)
}

// openRecorded opens the directories of the record in which entries come back. It returns those that their owner may not
// write in. A stage shows that a run was interrupted: any directory may be open, with another time.
func (x *Target) openRecorded(parents map[tree.Name]bool) (locked []*openedDir) {
	n, interrupted := x.node, x.state.Interrupted()
	for _, recorded := range x.record.Entries {
		p := recorded.Path
		if recorded.Type != tree.TypeDir || !parents[p] && !interrupted || x.opened[p] != nil || x.inFailedDir(p) {
			continue
		}
		info, err := n.Dir.Lstat(string(p))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
			continue // it is itself restored
		}
		var e *tree.Entry
		if err == nil {
			e, err = tree.EntryOf(n.Dir, string(p), info)
		}
		if err != nil {
			x.noteUnfinished(p, unsettled, err)
			continue
		}
		if parents[p] && e.Mode&0o300 != 0o300 {
			locked = append(locked, &openedDir{*e, disk.Inode(info)})
		}
		if !x.disturbed[p] {
			e.Seconds, e.Nanoseconds = recorded.Seconds, recorded.Nanoseconds
		}
		if interrupted && e.Mode == recorded.Mode|0o700 {
			e.Mode = recorded.Mode
		}
		x.opened[p] = &openedDir{*e, disk.Inode(info)}
	}
	return locked
}

// noteDisturbed notes the directories that somebody has written in. Their times stay, and a restored one gets a new time:
// with the old time, what users have removed from it would look lost by the disk.
func (x *Target) noteDisturbed() {
	restored := tree.ByPath(x.condition.Restore)
	for _, f := range x.condition.Findings {
		if slices.Contains([]string{content.New, content.Changed, content.Moved}, f.Kind) || f.Kind == content.Deleted && restored[f.Path] == nil {
			x.disturbed[content.Parent(f.Path)] = true
		}
		if f.Target != "" {
			x.disturbed[content.Parent(f.Target)] = true
		}
	}
}

// withOwnerAccess returns what a directory is until everything in it is back: its owner has access.
func withOwnerAccess(e *tree.Entry) *tree.Entry {
	open := *e
	open.Mode |= 0o700
	return &open
}

// inOpened calls f with a directory, unless another has its name now.
func inOpened(n *store.Node, e *openedDir, f func(disk.Dir) error) error {
	dir, err := n.Dir.Sub(string(e.Path))
	if err != nil {
		return err
	}
	info, err := dir.Lstat(".")
	if err == nil && (e.inode == 0 || e.inode == disk.Inode(info)) {
		err = f(dir)
	}
	return errors.Join(err, dir.Close())
}

// closeDirs syncs new names, and gives directories their modes and times, inner ones first. Directories for which that
// fails stay open for the next run.
func (x *Target) closeDirs() {
	n := x.node
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(x.opened))) {
		e := x.opened[p]
		delete(x.opened, p)
		if x.inFailedDir(p) {
			continue
		}
		switch err := inOpened(n, e, func(dir disk.Dir) error { return x.setMeta(dir, ".", &e.Entry) }); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue // somebody has removed it
		case errors.Is(err, fs.ErrPermission):
			x.Notes = append(x.Notes, fmt.Sprintf("%s: mode and time cannot be set: %s", n.Path(p), disk.Reason(err)))
		case err != nil:
			x.opened[p] = e
			x.noteUnfinished(p, unsettled, err)
		}
		x.synced[string(p)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(x.synced)) {
		if err := n.Dir.SyncDir(name); err != nil && !errors.Is(err, fs.ErrPermission) {
			x.noteUnfinished(tree.Name(name), ": the names in it may not last", err)
		}
	}
}
