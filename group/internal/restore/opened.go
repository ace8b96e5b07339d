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

// begin makes the directories that come back, and opens those in which something comes back. Where an
// interrupted run has left a stage, it may have left any directory open, and with another time.
func (x *Target) begin() error {
	n := x.node
	noted := map[tree.Name]bool{}
	note := func(e *tree.Entry, info fs.FileInfo) {
		if !noted[e.Path] {
			noted[e.Path] = true
			x.opened = append(x.opened, &openedDir{*e, disk.Inode(info)})
		}
	}
	x.disturb()
	within := map[tree.Name]bool{} // directories in which something comes back
	for i, e := range x.others {
		within[tree.Name(path.Dir(string(e.Path)))] = true
		if e.Type != tree.TypeDir || x.lost(e.Path) {
			continue
		}
		if info, err := n.Dir.Lstat(string(e.Path)); err == nil && info.IsDir() { // the node's own, or it could not be read
			note(e, info)
			inOpened(n, x.opened[len(x.opened)-1], func(dir disk.Dir) error { // what that does not do, end does, or notes
				_, err := tree.SetMeta(dir, ".", opening(e))
				return err
			})
			continue
		}
		name := fmt.Sprint("dir-", i)
		info, err := x.makeDir(x.stage, name, e)
		if err != nil {
			x.leave(e, e.Path, err)
			continue
		}
		x.made[e.Path] = name
		note(x.timed(e, info), info)
	}
	for _, f := range x.files {
		for _, p := range f.names {
			within[tree.Name(path.Dir(string(p)))] = true
		}
	}
	interrupted := x.state.Interrupted()
	var locked []*openedDir
	for _, was := range x.record.Entries {
		if was.Type != tree.TypeDir || !within[was.Path] && !interrupted || x.made[was.Path] != "" || x.lost(was.Path) {
			continue
		}
		info, err := n.Dir.Lstat(string(was.Path))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
			continue // it comes back itself
		}
		var e *tree.Entry
		if err == nil {
			e, err = tree.EntryOf(n.Dir, string(was.Path), info)
		}
		if err != nil {
			x.unsettled(was.Path, err)
			continue
		}
		if within[e.Path] && e.Mode&0o300 != 0o300 {
			locked = append(locked, &openedDir{*e, disk.Inode(info)})
		}
		if !x.disturbed[e.Path] {
			e.Seconds, e.Nanoseconds = was.Seconds, was.Nanoseconds
		}
		if interrupted && e.Mode == was.Mode|0o700 {
			e.Mode = was.Mode
		}
		note(e, info)
	}
	if err := cmp.Or(n.Sync(), n.Dir.SyncDir(".")); err != nil { // the stage lasts
		return err
	}
	for _, e := range locked {
		if err := inOpened(n, e, func(dir disk.Dir) error { return dir.Chmod(".", tree.FileMode(e.Mode|0o700)) }); err != nil {
			x.unsettled(e.Path, err)
		}
	}
	return nil
}

// disturb notes the directories that somebody has written in. Their times stay, and one that comes back has a new time:
// by the old one, what users have taken away from it would look as if the disk had lost it.
func (x *Target) disturb() {
	x.disturbed = map[tree.Name]bool{}
	back := tree.ByPath(x.condition.Restore)
	for _, f := range x.condition.Findings {
		if slices.Contains([]string{content.New, content.Changed, content.Moved}, f.Kind) || f.Kind == content.Deleted && back[f.Path] == nil {
			x.disturbed[content.Above(f.Path)] = true
		}
		if f.Target != "" {
			x.disturbed[content.Above(f.Target)] = true
		}
	}
}

// timed returns a directory that comes back with the time that it is to have; info is that of the one that was made.
func (x *Target) timed(e *tree.Entry, info fs.FileInfo) *tree.Entry {
	if !x.disturbed[e.Path] {
		return e
	}
	as := *e
	as.Seconds, as.Nanoseconds = info.ModTime().Unix(), int64(info.ModTime().Nanosecond())
	return &as
}

// unsettled notes that a directory does not get its mode and time, or not lastingly.
func (x *Target) unsettled(p tree.Name, err error) {
	x.Left = append(x.Left, fmt.Sprintf("%s: its mode and time are not restored: %s", x.node.Path(p), disk.Reason(err)))
}

// opening returns what a directory is to be until all that comes back is in it, also if the run is interrupted.
func opening(e *tree.Entry) *tree.Entry {
	open := *e
	open.Mode |= 0o700
	return &open
}

// makeDir makes a directory. Its mode and owner last before its name does.
func (x *Target) makeDir(at disk.Dir, name string, e *tree.Entry) (fs.FileInfo, error) {
	if err := at.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	info, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if _, err := tree.SetMeta(at, name, opening(x.timed(e, info))); err != nil {
		return nil, err
	}
	info, err = at.Lstat(name)
	return info, errors.Join(err, at.SyncDir(name))
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

// end makes new names last, and gives directories their modes and times, those inside before those that they lie in.
// Those that it fails to give them stay open, for the next run.
func (x *Target) end() {
	n := x.node
	slices.SortFunc(x.opened, func(a, b *openedDir) int { return strings.Compare(string(b.Path), string(a.Path)) })
	var open []*openedDir
	for _, e := range x.opened {
		if x.lost(e.Path) {
			continue
		}
		switch err := inOpened(n, e, func(dir disk.Dir) error { return x.setMeta(dir, ".", &e.Entry) }); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue // somebody has removed it
		case errors.Is(err, fs.ErrPermission):
			x.Notes = append(x.Notes, fmt.Sprintf("%s: mode and time cannot be set: %s", n.Path(e.Path), disk.Reason(err)))
		case err != nil:
			open = append(open, e)
			x.unsettled(e.Path, err)
		}
		x.synced[string(e.Path)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(x.synced)) {
		if err := n.Dir.SyncDir(name); err != nil && !errors.Is(err, fs.ErrPermission) {
			x.Left = append(x.Left, fmt.Sprintf("%s: the names in it may not last: %s", n.Path(tree.Name(name)), disk.Reason(err)))
		}
	}
	x.opened = open
}
