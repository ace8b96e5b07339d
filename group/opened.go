package group

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
func (x *target) begin() error {
	n := x.node
	noted := map[tree.Name]bool{}
	note := func(e *tree.Entry, info fs.FileInfo) {
		if !noted[e.Path] {
			noted[e.Path] = true
			x.opened = append(x.opened, &openedDir{*e, disk.Inode(info)})
		}
	}
	within := map[tree.Name]bool{} // directories in which something comes back
	for i, e := range x.others {
		within[tree.Name(path.Dir(string(e.Path)))] = true
		if e.Type != tree.TypeDir {
			continue
		}
		open := *e // all that it is to be, if the run is interrupted
		open.Mode |= 0o700
		if info, err := n.dir.Lstat(string(e.Path)); err == nil && info.IsDir() { // the node's own, or it could not be read
			note(e, info)
			if err := n.inOpened(x.opened[len(x.opened)-1], func(dir disk.Dir) error {
				_, err := tree.SetMeta(dir, ".", &open)
				return err
			}); err != nil && !errors.Is(err, fs.ErrPermission) { // which end notes
				return err
			}
			continue
		}
		name := fmt.Sprint("dir-", i)
		if err := x.stage.Mkdir(name, 0o700); err != nil {
			return err
		}
		if _, err := tree.SetMeta(x.stage, name, &open); err != nil {
			return err
		}
		info, err := x.stage.Lstat(name)
		if err = errors.Join(err, x.stage.SyncDir(name)); err != nil { // mode and owner last before the name does
			return err
		}
		x.made[e.Path] = name
		note(e, info)
	}
	for _, e := range x.files {
		within[tree.Name(path.Dir(string(e.Path)))] = true
	}
	disturbed := map[tree.Name]bool{} // directories that somebody has written in: their times stay
	for _, f := range x.condition.Findings {
		if f.What == New || f.What == Changed {
			disturbed[tree.Name(path.Dir(string(f.Path)))] = true
		}
	}
	interrupted := x.s.states[n.index].interrupted()
	var locked []*openedDir
	for _, was := range x.member.Entries {
		if was.Type != tree.TypeDir || !within[was.Path] && !interrupted {
			continue
		}
		info, err := n.dir.Lstat(string(was.Path))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
			continue // it comes back itself
		}
		if err != nil {
			return err
		}
		e, err := tree.EntryOf(n.dir, string(was.Path), info)
		if err != nil {
			return err
		}
		if within[e.Path] && e.Mode&0o300 != 0o300 {
			locked = append(locked, &openedDir{*e, disk.Inode(info)})
		}
		if !disturbed[e.Path] {
			e.Seconds, e.Nanoseconds = was.Seconds, was.Nanoseconds
		}
		if interrupted && e.Mode == was.Mode|0o700 {
			e.Mode = was.Mode
		}
		note(e, info)
	}
	if err := cmp.Or(n.sync(), n.dir.SyncDir(".")); err != nil { // the stage lasts
		return err
	}
	for _, e := range locked {
		if err := n.inOpened(e, func(dir disk.Dir) error { return dir.Chmod(".", tree.FileMode(e.Mode|0o700)) }); err != nil {
			return err
		}
	}
	return nil
}

// inOpened calls f with a directory, unless another has its name now.
func (n *node) inOpened(e *openedDir, f func(disk.Dir) error) error {
	dir, err := n.dir.Sub(string(e.Path))
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
func (x *target) end(synced map[string]bool) error {
	n := x.node
	slices.SortFunc(x.opened, func(a, b *openedDir) int { return strings.Compare(string(b.Path), string(a.Path)) })
	for _, e := range x.opened {
		switch err := n.inOpened(e, func(dir disk.Dir) error { return x.setMeta(dir, ".", &e.Entry) }); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue // somebody has removed it
		case errors.Is(err, fs.ErrPermission): // it is another user's, as where a disk is mounted
			x.notes = append(x.notes, fmt.Sprintf("%s: mode and time cannot be set, as it is another user's", n.path(e.Path)))
		case err != nil:
			return err
		}
		synced[string(e.Path)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(synced)) {
		if err := n.dir.SyncDir(name); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	x.opened = nil
	return nil
}
