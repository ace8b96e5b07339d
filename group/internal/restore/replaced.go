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

// keepReplaced keeps what has the name of an entry: somebody may have written it. Earlier copies stay. If names can be
// exchanged, the source has the name then. Else assignName gives it the name.
func (x *Target) keepReplaced(e *tree.Entry, p tree.Name, source string, existing fs.FileInfo) (named bool, err error) {
	n, name := x.node, string(p)
	target, err := n.ReplacedPath(fmt.Sprint(x.origin.Generation), name)
	if err != nil {
		return false, err
	}
	if err := disk.MkdirAll(n.Dir, path.Dir(target), 0o700); err != nil {
		return false, err
	}
	if e.Type != tree.TypeDir {
		err = x.exchange(source, target, name)
		named = err == nil
	}
	if e.Type == tree.TypeDir || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EXDEV) {
		err = moveReplaced(n, e, name, target, existing)
	}
	if err != nil {
		return false, err
	}
	x.Replaced = append(x.Replaced, tree.Name(n.Path(tree.Name(target))))
	if named {
		x.synced[path.Dir(target)] = true
		return true, nil
	}
	return false, n.Dir.SyncDir(path.Dir(target))
}

// exchange gives the source a name, and moves what had the name to target, in one step. So the source lies at target
// before: what an interrupted run leaves there is nothing that anybody has lost.
func (x *Target) exchange(source, target, name string) error {
	dir := x.node.Dir
	if err := dir.Rename(source, target); err != nil {
		return err
	}
	err := dir.Exchange(target, name)
	if err == nil {
		return nil
	}
	return cmp.Or(dir.Rename(target, source), err)
}

// moveReplaced keeps what has a name. Where the file system has links, the name always has a file.
func moveReplaced(n *store.Node, e *tree.Entry, name, target string, existing fs.FileInfo) (err error) {
	if e.Type == tree.TypeDir || !existing.Mode().IsRegular() || n.Dir.Link(name, target) != nil {
		err = n.Dir.Rename(name, target)
	}
	if errors.Is(err, syscall.EXDEV) {
		if err = copyReplaced(n, name, target, existing); err == nil && e.Type == tree.TypeDir {
			err = n.Dir.Remove(name) // a directory does not replace a file
		}
	}
	return err
}

// copyReplaced copies a file or symbolic link that lies on another file system.
func copyReplaced(n *store.Node, name, keptPath string, existing fs.FileInfo) error {
	if existing.Mode()&fs.ModeSymlink != 0 {
		target, err := n.Dir.Readlink(name)
		if err == nil {
			err = n.Dir.Symlink(target, keptPath)
		}
		return err
	}
	source, err := n.Dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	f, err := n.Dir.OpenFile(keptPath, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, source)
	if err = cmp.Or(err, n.Dir.SetTime(keptPath, existing.ModTime()), f.Sync(), f.Close()); err != nil {
		n.Dir.Remove(keptPath)
		return err
	}
	current, err := n.Dir.Lstat(name)
	if err == nil && !tree.Seen(tree.Name(name), existing).Still(current) {
		err = errors.New("it has changed meanwhile; run again")
	}
	return err
}
