package restore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// An openedDir is a directory that recover writes in, and the mode and time that it gets at the end. It is known by
// its inode: another one that has its name meanwhile stays as it is.
type openedDir struct {
	tree.Entry
	inode uint64 // 0: not known
}

// openDirs makes the directories that come back, and opens those in which entries come back. A stage shows that a run was
// interrupted: any directory may be open, with another time.
func (x *Target) openDirs() error {
	n := x.node
	noted := map[tree.Name]bool{}
	note := func(e *tree.Entry, info fs.FileInfo) {
		if !noted[e.Path] {
			noted[e.Path] = true
			x.opened = append(x.opened, &openedDir{*e, disk.Inode(info)})
		}
	}
	x.noteDisturbed()
	parents := map[tree.Name]bool{} // directories in which something comes back
	for i, e := range x.nonFiles {
		parents[tree.Name(path.Dir(string(e.Path)))] = true
		if e.Type != tree.TypeDir || x.inFailedDir(e.Path) {
			continue
		}
		if info, err := n.Dir.Lstat(string(e.Path)); err == nil && info.IsDir() { // the node's own, or it could not be read
			note(e, info)
			inOpened(n, x.opened[len(x.opened)-1], func(dir disk.Dir) error { // closeDirs repeats it, or notes the error
				_, err := tree.SetMeta(dir, ".", withOwnerAccess(e))
				return err
			})
			continue
		}
		name := fmt.Sprint("dir-", i)
		info, err := x.makeDir(x.stage, name, e)
		if err != nil {
			x.noteFailed(e, e.Path, err)
			continue
		}
		x.madeDirs[e.Path] = name
		note(x.withTime(e, info), info)
	}
	for _, f := range x.files {
		for _, p := range f.names {
			parents[tree.Name(path.Dir(string(p)))] = true
		}
	}
	interrupted := x.state.Interrupted()
	var locked []*openedDir
	for _, recorded := range x.record.Entries {
		if recorded.Type != tree.TypeDir || !parents[recorded.Path] && !interrupted || x.madeDirs[recorded.Path] != "" || x.inFailedDir(recorded.Path) {
			continue
		}
		info, err := n.Dir.Lstat(string(recorded.Path))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
			continue // it is itself restored
		}
		var e *tree.Entry
		if err == nil {
			e, err = tree.EntryOf(n.Dir, string(recorded.Path), info)
		}
		if err != nil {
			x.noteUnsettled(recorded.Path, err)
			continue
		}
		if parents[e.Path] && e.Mode&0o300 != 0o300 {
			locked = append(locked, &openedDir{*e, disk.Inode(info)})
		}
		if !x.disturbed[e.Path] {
			e.Seconds, e.Nanoseconds = recorded.Seconds, recorded.Nanoseconds
		}
		if interrupted && e.Mode == recorded.Mode|0o700 {
			e.Mode = recorded.Mode
		}
		note(e, info)
	}
	if err := cmp.Or(n.Sync(), n.Dir.SyncDir(".")); err != nil { // so that the stage lasts
		return err
	}
	for _, e := range locked {
		if err := inOpened(n, e, func(dir disk.Dir) error { return dir.Chmod(".", tree.FileMode(e.Mode|0o700)) }); err != nil {
			x.noteUnsettled(e.Path, err)
		}
	}
	return nil
}

// noteDisturbed notes the directories that somebody has written in. Their times stay, and a restored one gets a new time:
// with the old time, what users have removed from it would look lost by the disk.
func (x *Target) noteDisturbed() {
	x.disturbed = map[tree.Name]bool{}
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

// withTime returns a directory that comes back with the time that it will have; info is that of the new directory.
func (x *Target) withTime(e *tree.Entry, info fs.FileInfo) *tree.Entry {
	if !x.disturbed[e.Path] {
		return e
	}
	entry := *e
	entry.Seconds, entry.Nanoseconds = info.ModTime().Unix(), int64(info.ModTime().Nanosecond())
	return &entry
}

// noteUnsettled notes that a directory does not get its mode and time, or that they may not last.
func (x *Target) noteUnsettled(p tree.Name, err error) {
	x.Unfinished = append(x.Unfinished, fmt.Sprintf("%s: its mode and time are not restored: %s", x.node.Path(p), disk.Reason(err)))
}

// withOwnerAccess returns what a directory is until everything in it is back: its owner has access.
func withOwnerAccess(e *tree.Entry) *tree.Entry {
	open := *e
	open.Mode |= 0o700
	return &open
}

// makeDir makes a directory. Its mode and owner last before its name does.
func (x *Target) makeDir(dir disk.Dir, name string, e *tree.Entry) (fs.FileInfo, error) {
	if err := dir.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if _, err := tree.SetMeta(dir, name, withOwnerAccess(x.withTime(e, info))); err != nil {
		return nil, err
	}
	info, err = dir.Lstat(name)
	return info, errors.Join(err, dir.SyncDir(name))
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
	slices.SortFunc(x.opened, func(a, b *openedDir) int { return strings.Compare(string(b.Path), string(a.Path)) })
	var open []*openedDir
	for _, e := range x.opened {
		if x.inFailedDir(e.Path) {
			continue
		}
		switch err := inOpened(n, e, func(dir disk.Dir) error { return x.setMeta(dir, ".", &e.Entry) }); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue // somebody has removed it
		case errors.Is(err, fs.ErrPermission):
			x.Notes = append(x.Notes, fmt.Sprintf("%s: mode and time cannot be set: %s", n.Path(e.Path), disk.Reason(err)))
		case err != nil:
			open = append(open, e)
			x.noteUnsettled(e.Path, err)
		}
		x.synced[string(e.Path)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(x.synced)) {
		if err := n.Dir.SyncDir(name); err != nil && !errors.Is(err, fs.ErrPermission) {
			x.Unfinished = append(x.Unfinished, fmt.Sprintf("%s: the names in it may not last: %s", n.Path(tree.Name(name)), disk.Reason(err)))
		}
	}
	x.opened = open
}
