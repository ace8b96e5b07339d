package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"volley/files"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Access is what a verb does with the directories of nodes.
type Access struct {
	Writes     bool // it takes locks that nobody shares
	Makes      bool // directories that are missing
	Needs      bool // all directories
	Concurrent bool // it only reads, and goes on without the lock where another run writes
}

// A Node is one of the group whose directory is here.
type Node struct {
	Index    int
	DirPath  string    // its directory
	DirName  string    // what the caller calls that
	Name     tree.Name // of it, or of its root: see Manifest.Names
	Absent   string    // why it cannot be reached
	Failing  string    // why it cannot be read
	Added    bool      // to a group that is resized
	Root     string    // in which the directory is a snapshot; "": it is none
	RootName string    // what the caller calls the root
	Meta     string    // where its .volley lies, unless in the directory itself
	ReadOnly string    // why it cannot be written to; "": it can, or nobody has tried
	Dir      disk.Dir  // nil: there is none, or it cannot be read
	Unlock   func(remove bool)
	Writer   *files.BusyError  // who writes to it meanwhile; nil: nobody
	marks    string            // of what it held when it was opened beside another run
	Bare     bool              // it had no .volley when it was opened, and so no lock to share
	undo     func()            // removes the directories that were made for it, while empty
	unmount  func()            // and those for its .volley, where that lies elsewhere
	Stored   map[string][]byte // its record files, where they are in memory, by name
	Held     map[int64]*Loaded // by generation
	Unread   map[int64]error   // generations whose manifest, or own record, the disk does not give
	Replaced []tree.Name       // where directories lie by now that had names of files of Volley's
}

// Open opens and locks a node. A missing one stays closed unless the verb makes it; one removed meanwhile is retried. Where
// another rank of the run has the directory, the error is a [*protection.RefusedError].
func (n *Node) Open(d disk.Disk, v Access, holder files.Holder) (err error) {
	for range openTimes {
		if err = n.tryOpen(d, v, holder); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		n.Close()
		time.Sleep(time.Millisecond)
	}
	if busy, ok := errors.AsType[*files.BusyError](err); ok {
		err = busy.SeenBy(holder)
	}
	if errors.As(err, new(*files.SharedError)) {
		err = &protection.RefusedError{Err: err}
	}
	return err
}

const openTimes = 100

func (n *Node) tryOpen(d disk.Disk, v Access, holder files.Holder) (err error) {
	n.Dir, err = d.Open(n.DirPath)
	switch {
	case errors.Is(err, fs.ErrNotExist) && v.Makes:
		if n.undo, err = disk.Make(d, n.DirPath, 0o777); err == nil {
			n.Dir, err = d.Open(n.DirPath)
		}
	case errors.Is(err, fs.ErrNotExist) && v.Needs:
		return Inputf("%s: no such directory: mount it, or mend the name; if it is lost, recover first", n.DirName)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return Inputf("%s is not a directory: name the directory of a node", n.DirName)
	}
	if err != nil {
		return err
	}
	if err := n.mount(d, v); err != nil {
		return err
	}
	info, err := n.Dir.Lstat(tree.MetaName)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !v.Writes:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err = n.Dir.Mkdir(tree.MetaName, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	case err == nil && !info.IsDir():
		return Inputf("%s: it is not a directory, and the name is Volley's own: move it away", n.Path(tree.MetaName))
	}
	if lock, failed := n.Dir.Lstat(MetaPath(LockFile)); err == nil && failed == nil && !lock.Mode().IsRegular() {
		return Inputf("%s is a %s, and the name is that of Volley's lock: move it away", n.Path(tree.Name(MetaPath(LockFile))), disk.Kind(lock.Mode()))
	}
	if err == nil {
		n.Unlock, err = n.Dir.Lock(MetaPath(LockFile), !v.Writes, holder)
	}
	if n.Writer = nil; v.Concurrent && errors.As(err, &n.Writer) {
		n.marks, err = n.mark(), nil
	}
	refused := func() bool { return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) }
	if v.Writes && refused() { // it can be read yet
		n.ReadOnly = disk.Reason(err)
		n.Unlock, err = n.Dir.Lock(MetaPath(LockFile), true, holder)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // there is no .volley
		}
	}
	if refused() {
		return nil // who only reads goes without, and compares before and after
	}
	if err == nil && v.Writes && n.ReadOnly == "" {
		n.makePrivate()
	}
	return err
}

// Moved reports whether a node that is read beside another run holds something else than when that was asked last. Once the
// other run has ended the node is locked like any other.
func (n *Node) Moved(holder files.Holder) bool {
	if n.Writer == nil {
		return false
	}
	if unlock, err := n.Dir.Lock(MetaPath(LockFile), true, holder); err == nil {
		n.Unlock, n.Writer = unlock, nil
	}
	earlier := n.marks
	n.marks = n.mark()
	return n.marks != earlier
}

// mark returns what tells generations that are in force, or are to be, from others: no two have the same.
func (n *Node) mark() string {
	entries, err := n.Dir.ReadDir(tree.MetaName)
	text := fmt.Sprint(err)
	for _, e := range entries {
		if _, _, ok := NameOf(e.Name()); !ok {
			continue
		}
		sum, err := disk.SumText(n.Dir, MetaPath(e.Name(), ManifestFile), MostManifest)
		text += fmt.Sprintf(" %s %s %v", e.Name(), sum, err)
	}
	return text
}

// mount gives the node a .volley that lies elsewhere.
func (n *Node) mount(d disk.Disk, v Access) error {
	if n.Meta == "" {
		return nil
	}
	meta, err := d.Open(n.Meta)
	if errors.Is(err, fs.ErrNotExist) && v.Writes {
		if n.unmount, err = disk.Make(d, n.Meta, 0o700); err == nil {
			meta, err = d.Open(n.Meta)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n.Dir = disk.Mounted(n.Dir, tree.MetaName, meta)
	return nil
}

// Close gives back what the node has: what was made for it and not used goes.
func (n *Node) Close() {
	if n.Dir != nil {
		entries, err := n.Dir.ReadDir(tree.MetaName)
		unused := err == nil && len(entries) == 1 && entries[0].Name() == LockFile
		if n.Unlock != nil {
			n.Unlock(unused)
		}
		if unused {
			n.Dir.Remove(tree.MetaName) // fails, as it should, where something lies in it
		}
		n.Dir.Close()
	}
	for _, undo := range []func(){n.undo, n.unmount} {
		if undo != nil {
			undo()
		}
	}
	n.Dir, n.Unlock, n.undo, n.unmount = nil, nil, nil, nil
}

// Keep has the directories that were made for the node stay, though nothing may lie in them: it is as it was protected.
func (n *Node) Keep() { n.undo = nil }

// Created reports whether its directory was made for it.
func (n *Node) Created() bool { return n.undo != nil }

// Hold is Open. One that only reads finds no lock to share at a node in which nothing was protected yet.
func (n *Node) Hold(d disk.Disk, v Access, holder files.Holder) (err error) {
	for range 2 { // the lock may have come just now
		n.Close()
		if err = n.Open(d, v, holder); err != nil || n.Dir == nil || n.Unlock != nil {
			return err
		}
		if n.Bare = n.IsBare(); n.Bare {
			break
		}
	}
	return err
}

// IsBare reports whether the node has no .volley.
func (n *Node) IsBare() bool {
	_, err := n.Dir.Lstat(tree.MetaName)
	return errors.Is(err, fs.ErrNotExist)
}

// Sub returns the node that a directory of its root is.
func (n *Node) Sub(name string) *Node {
	return &Node{
		Index: n.Index, Name: n.Name, Absent: n.Absent, Root: n.Root, RootName: n.RootName,
		DirPath: filepath.Join(n.Root, name), DirName: tree.JoinPath(n.RootName, tree.Name(name)),
	}
}
