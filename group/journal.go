package group

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"volley/internal/disk"
)

// A journal says what is to be finished at a node when its files have their names: directories in
// which files were written get their modes and times. It is in the node's .volley
// from before the first of them changes until they are right, so that a run that follows
// knows of it.
type journal struct {
	Generation  int64       `json:"generation"`
	Directories []openedDir `json:"directories"`
}

// An openedDir is a directory that recover writes in. It is known by its inode: another one that
// has its name meanwhile stays as it is.
type openedDir struct {
	Entry
	Inode uint64 `json:"inode,omitempty"` // 0: not known
}

func openedOf(e Entry, info fs.FileInfo) openedDir { return openedDir{e, disk.Inode(info)} }

// begin notes which directories will be written in, and opens them for that. Those of a run
// that did not end keep what that has noted.
func (x *target) begin() error {
	n := x.node
	x.journal.Generation = x.s.generation
	noted := map[Name]bool{}
	note := func(e openedDir) {
		if !noted[e.Path] {
			noted[e.Path] = true
			x.journal.Directories = append(x.journal.Directories, e)
		}
	}
	for _, i := range x.others {
		e := x.member.Entries[i]
		if e.Type != typeDir || e.Path == "." {
			continue
		}
		if info, err := n.dir.Lstat(string(e.Path)); err == nil && info.IsDir() { // it could not be read
			note(openedOf(e, info))
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
		note(openedOf(e, info))
	}
	if u := x.condition.unfinished; u != nil && u.Generation == x.s.generation {
		for _, e := range u.Directories {
			note(e)
		}
	}
	var within []Name
	for _, i := range x.others {
		e := &x.member.Entries[i]
		if e.Path == "." {
			info, err := n.dir.Lstat(".")
			if err != nil {
				return err
			}
			note(openedOf(*e, info))
		}
		within = append(within, Name(path.Dir(string(e.Path))))
	}
	for _, e := range x.files {
		within = append(within, Name(path.Dir(string(e.Path))))
	}
	slices.Sort(within)
	as := x.undisturbed()
	var locked []openedDir
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
			note(openedOf(e, info))
		}
		if e.Mode&0o300 != 0o300 {
			locked = append(locked, openedOf(e, info))
		}
	}
	if len(x.journal.Directories) == 0 {
		return n.identify(x.s.manifest)
	}
	text, err := json.Marshal(x.journal)
	if err != nil {
		return err
	}
	if err := n.write(recoveringFile, disk.Seal(text)); err != nil {
		return err
	}
	if err := n.identify(x.s.manifest); err != nil {
		return err
	}
	for i := range locked {
		if err := n.inOpened(&locked[i], func(dir disk.Dir) error { return dir.Chmod(".", 0o700) }); err != nil {
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
	if err == nil && (e.Inode == 0 || e.Inode == disk.Inode(info)) {
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
	slices.SortFunc(x.journal.Directories, func(a, b openedDir) int { return bytes.Compare([]byte(b.Path), []byte(a.Path)) })
	for i := range x.journal.Directories {
		e := &x.journal.Directories[i]
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
	for name := range synced {
		if err := n.dir.SyncDir(name); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}
