package group

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
	"volley/group/internal/tree"

	"volley/internal/disk"
)

// access is what a verb does with the directories of nodes.
type access struct {
	writes bool // it takes locks that nobody shares
	makes  bool // directories that are missing
	needs  bool // all directories
}

// A node is one of the group whose directory is here.
type node struct {
	index    int
	at       string    // its directory
	given    string    // what the caller calls that
	name     tree.Name // of it, or of its root: see Manifest.Names
	absent   string    // why it cannot be reached
	added    bool      // to a group that is resized
	root     string    // in which the directory is a snapshot; "": it is none
	rootName string    // what the caller calls the root
	meta     string    // where its .volley lies, unless in the directory itself
	readOnly string    // why it cannot be written to; "": it can, or nobody has tried
	dir      disk.Dir  // nil: there is none, or it cannot be read
	unlock   func(remove bool)
	bare     bool              // it had no .volley when it was opened, and so no lock to share
	undo     func()            // removes the directories that were made for it
	stored   map[string][]byte // its record files, where they are in memory, by name
	held     map[int64]*loaded // by generation
	unread   map[int64]error   // generations whose manifest, or own record, the disk does not give
}

// open opens and locks a node. A missing one stays closed unless the verb makes it; one removed meanwhile is retried.
func (n *node) open(d disk.Disk, v access, holder disk.Holder) (err error) {
	for range openTimes {
		if err = n.tryOpen(d, v, holder); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		n.close()
		time.Sleep(time.Millisecond)
	}
	return err
}

const openTimes = 100

func (n *node) tryOpen(d disk.Disk, v access, holder disk.Holder) (err error) {
	n.dir, err = d.Open(n.at)
	switch {
	case errors.Is(err, fs.ErrNotExist) && v.makes:
		if n.undo, err = disk.Make(d, n.at, 0o777); err == nil {
			n.dir, err = d.Open(n.at)
		}
	case errors.Is(err, fs.ErrNotExist) && v.needs:
		return inputf("%s: no such directory", n.given)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return inputf("%s is not a directory: name the directory of a node", n.given)
	}
	if err != nil {
		return err
	}
	if err := n.mount(d, v); err != nil {
		return err
	}
	info, err := n.dir.Lstat(tree.MetaName)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !v.writes:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err = n.dir.Mkdir(tree.MetaName, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	case err == nil && !info.IsDir():
		return inputf("%s: it is not a directory, and the name is Volley's own: move it away", n.path(tree.MetaName))
	}
	if err == nil {
		n.unlock, err = n.dir.Lock(metaPath(lockFile), !v.writes, holder)
	}
	refused := func() bool { return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) }
	if v.writes && refused() { // it can be read yet
		n.readOnly = disk.Reason(err)
		n.unlock, err = n.dir.Lock(metaPath(lockFile), true, holder)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // there is no .volley
		}
	}
	if refused() {
		return nil // who only reads goes without: see [session.steadied]
	}
	if err == nil && v.writes && n.readOnly == "" {
		n.makePrivate()
	}
	return err
}

// mount gives the node a .volley that lies elsewhere.
func (n *node) mount(d disk.Disk, v access) error {
	if n.meta == "" {
		return nil
	}
	at, err := d.Open(n.meta)
	if errors.Is(err, fs.ErrNotExist) && v.writes {
		if _, err = disk.Make(d, n.meta, 0o700); err == nil {
			at, err = d.Open(n.meta)
		}
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	n.dir = disk.Mounted(n.dir, tree.MetaName, at)
	return nil
}

// close gives back what the node has: what was made for it and not used goes.
func (n *node) close() {
	if n.dir != nil {
		entries, err := n.dir.ReadDir(tree.MetaName)
		unused := err == nil && len(entries) == 1 && entries[0].Name() == lockFile
		if n.unlock != nil {
			n.unlock(unused)
		}
		if unused {
			n.dir.Remove(tree.MetaName) // fails, as it should, where something lies in it
		}
		n.dir.Close()
	}
	if n.undo != nil {
		n.undo()
	}
	n.dir, n.unlock, n.undo = nil, nil, nil
}

// hold is open. One that only reads finds no lock to share at a node in which nothing was protected yet.
func (n *node) hold(d disk.Disk, v access, holder disk.Holder) (err error) {
	for range 2 { // the lock may have come just now
		n.close()
		if err = n.open(d, v, holder); err != nil || n.dir == nil || n.unlock != nil {
			return err
		}
		if n.bare = n.isBare(); n.bare {
			break
		}
	}
	return err
}

// isBare reports whether the node has no .volley.
func (n *node) isBare() bool {
	_, err := n.dir.Lstat(tree.MetaName)
	return errors.Is(err, fs.ErrNotExist)
}

// sub returns the node that a directory of its root is.
func (n *node) sub(name string) *node {
	return &node{
		index: n.index, name: n.name, absent: n.absent, root: n.root, rootName: n.rootName,
		at: filepath.Join(n.root, name), given: tree.JoinPath(n.rootName, tree.Name(name)),
	}
}
