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

// keepReplaced keeps what has the name of an entry: somebody may have written it. Earlier copies stay. What was made has
// the name then, where names can be exchanged, and put gives it the name elsewhere.
func (x *Target) keepReplaced(e *tree.Entry, p tree.Name, made string, there fs.FileInfo) (named bool, err error) {
	n, name := x.node, string(p)
	to, err := n.ReplacedPath(fmt.Sprint(x.origin.Generation), name)
	if err != nil {
		return false, err
	}
	if err := disk.MkdirAll(n.Dir, path.Dir(to), 0o700); err != nil {
		return false, err
	}
	if e.Type != tree.TypeDir {
		err = x.exchange(made, to, name)
		named = err == nil
	}
	if e.Type == tree.TypeDir || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EXDEV) {
		err = keep(n, e, name, to, there)
	}
	if err != nil {
		return false, err
	}
	x.Replaced = append(x.Replaced, tree.Name(n.Path(tree.Name(to))))
	if named {
		x.synced[path.Dir(to)] = true
		return true, nil
	}
	return false, n.Dir.SyncDir(path.Dir(to))
}

// exchange gives what was made a name, and has what had it by then in replaced, in one step. So what was made lies in
// replaced before: what an interrupted run leaves there is nothing that anybody has lost.
func (x *Target) exchange(made, to, name string) error {
	dir := x.node.Dir
	if err := dir.Rename(made, to); err != nil {
		return err
	}
	err := dir.Exchange(to, name)
	if err == nil {
		return nil
	}
	return cmp.Or(dir.Rename(to, made), err)
}

// keep keeps what has a name. The name is never without a file, where the file system has links.
func keep(n *store.Node, e *tree.Entry, name, to string, there fs.FileInfo) (err error) {
	if e.Type == tree.TypeDir || !there.Mode().IsRegular() || n.Dir.Link(name, to) != nil {
		err = n.Dir.Rename(name, to)
	}
	if errors.Is(err, syscall.EXDEV) {
		if err = copyReplaced(n, name, to, there); err == nil && e.Type == tree.TypeDir {
			err = n.Dir.Remove(name) // no directory replaces it
		}
	}
	return err
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
