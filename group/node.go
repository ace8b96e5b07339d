package group

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"volley/group/internal/tree"

	"volley/internal/disk"
)

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
func (n *node) open(d disk.Disk, v verb, holder disk.Holder) (err error) {
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

func (n *node) tryOpen(d disk.Disk, v verb, holder disk.Holder) (err error) {
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
func (n *node) mount(d disk.Disk, v verb) error {
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

// Apart returns an error where one of directories here is, or lies in, another. It makes and changes none of them.
func Apart(dirs []string) error { return apart(disk.OS, dirs, dirs) }

func (s *session) apart() error {
	var dirs, given []string
	for _, n := range s.nodes {
		if n.absent == "" {
			dirs, given = append(dirs, n.at), append(given, n.given)
		}
	}
	if s.Meta != "" { // or the next run would protect it
		dirs, given = append(dirs, s.Meta), append(given, s.Meta)
	}
	return apart(s.disk, dirs, given)
}

func apart(d disk.Disk, dirs, given []string) error {
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		paths[i], _ = disk.Whole(d, dir) // one that cannot be opened is failing
	}
	for i, a := range paths {
		for j, b := range paths {
			if i == j || a == "" || b == "" {
				continue
			}
			switch rel, err := filepath.Rel(a, b); {
			case err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)):
			case rel == ".":
				return inputf("%s and %s are the same directory: give every node its own", given[i], given[j])
			default:
				return inputf("%s lies in %s: give directories that lie apart", given[j], given[i])
			}
		}
	}
	return nil
}
