package restore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// keepReplaced keeps what has the name of an entry: somebody may have written it. Earlier copies stay.
func (x *Target) keepReplaced(e *tree.Entry, p tree.Name, there fs.FileInfo) error {
	n, name := x.node, string(p)
	to, err := n.ReplacedPath(fmt.Sprint(x.origin.Generation), name)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(n.Dir, path.Dir(to), 0o700); err != nil {
		return err
	}
	// The name is never without a file, where the file system has links.
	if e.Type == tree.TypeDir || !there.Mode().IsRegular() || n.Dir.Link(name, to) != nil {
		err = n.Dir.Rename(name, to)
	}
	if errors.Is(err, syscall.EXDEV) {
		if err = copyReplaced(n, name, to, there); err == nil && e.Type == tree.TypeDir {
			err = n.Dir.Remove(name) // no directory replaces it
		}
	}
	if err != nil {
		return err
	}
	x.Replaced = append(x.Replaced, tree.Name(n.Path(tree.Name(to))))
	return n.Dir.SyncDir(path.Dir(to))
}

// copyReplaced copies a file or symbolic link that lies on another file system.
func copyReplaced(n *store.Node, name, to string, there fs.FileInfo) error {
	if there.Mode()&fs.ModeSymlink != 0 {
		target, err := n.Dir.Readlink(name)
		if err == nil {
			err = n.Dir.Symlink(target, to)
		}
		return err
	}
	from, err := n.Dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := n.Dir.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err = cmp.Or(err, n.Dir.SetTime(to, there.ModTime()), f.Sync(), f.Close()); err != nil {
		n.Dir.Remove(to)
		return err
	}
	is, err := n.Dir.Lstat(name)
	if err == nil && !tree.Seen(tree.Name(name), there).Still(is) {
		err = errors.New("it has changed meanwhile; run again")
	}
	return err
}
