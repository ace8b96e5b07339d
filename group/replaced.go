package group

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"volley/group/internal/tree"

	"volley/internal/disk"
)

// setAside keeps what has the name of an entry: somebody may have written it. Earlier copies stay.
func (x *target) setAside(e *tree.Entry, p tree.Name, there fs.FileInfo) error {
	n, name := x.node, string(p)
	to, err := x.aside(name)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(n.dir, path.Dir(to), 0o700); err != nil {
		return err
	}
	// The name is never without a file, where the file system has links.
	if e.Type == tree.TypeDir || !there.Mode().IsRegular() || n.dir.Link(name, to) != nil {
		err = n.dir.Rename(name, to)
	}
	if errors.Is(err, syscall.EXDEV) {
		if err = n.copyAside(name, to, there); err == nil && e.Type == tree.TypeDir {
			err = n.dir.Remove(name) // no directory replaces it
		}
	}
	if err != nil {
		return err
	}
	x.replaced = append(x.replaced, tree.Name(n.path(tree.Name(to))))
	return n.dir.SyncDir(path.Dir(to))
}

// aside returns a free name for what is replaced. Where something that was replaced earlier is in the way, a part of it
// gets a number, in place of its end if it is too long.
func (x *target) aside(name string) (string, error) {
	at := path.Join(tree.MetaName, replacedName, fmt.Sprint(x.origin.generation))
	for part := range strings.SplitSeq(name, "/") {
		last := len(part) == len(name)
		_, name, _ = strings.Cut(name, "/")
		to := path.Join(at, part)
		for i := 1; ; i++ {
			info, err := x.node.dir.Lstat(to)
			if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() && !last {
				break
			}
			number := fmt.Sprint(".", i)
			switch {
			case errors.Is(err, syscall.ENAMETOOLONG) && len(part) > len(number):
				part = part[:len(part)-len(number)]
			case err != nil:
				return "", err
			}
			to = path.Join(at, part+number)
		}
		at = to
	}
	return at, nil
}

// copyAside copies a file or symbolic link that lies on another file system.
func (n *node) copyAside(name, to string, there fs.FileInfo) error {
	if there.Mode()&fs.ModeSymlink != 0 {
		target, err := n.dir.Readlink(name)
		if err == nil {
			err = n.dir.Symlink(target, to)
		}
		return err
	}
	from, err := n.dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := n.dir.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err = cmp.Or(err, n.dir.SetTime(to, there.ModTime()), f.Sync(), f.Close()); err != nil {
		n.dir.Remove(to)
		return err
	}
	is, err := n.dir.Lstat(name)
	if err == nil && !tree.Seen(tree.Name(name), there).Still(is) {
		err = errors.New("it has changed meanwhile; run again")
	}
	return err
}
