package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"volley/group/internal/tree"
	"volley/internal/disk"
)

// ReplacedPath returns a free name in a directory of replaced for what is replaced. Where something that was replaced
// earlier is in the way, a part of it gets a number, in place of its end if it is too long.
func (n *Node) ReplacedPath(dir, name string) (string, error) {
	parent := MetaPath(ReplacedName, dir)
	for part := range strings.SplitSeq(name, "/") {
		last := len(part) == len(name)
		_, name, _ = strings.Cut(name, "/")
		candidate := path.Join(parent, part)
		for i := 1; ; i++ {
			info, err := n.Dir.Lstat(candidate)
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
			candidate = path.Join(parent, part+number)
		}
		parent = candidate
	}
	return parent, nil
}

// MakeWay removes a directory that has the name of a file of Volley's in .volley. One that is not empty is somebody's, and
// goes to replaced.
func (n *Node) MakeWay(names ...string) error {
	name := MetaPath(names...)
	info, err := n.Dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err == nil {
		err = n.Dir.Remove(name)
	}
	if !errors.Is(err, fs.ErrExist) { // which is that of a directory that is not empty
		return err
	}
	target, err := n.ReplacedPath("", path.Join(names...))
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(n.Dir, path.Dir(target), 0o700); err != nil {
		return err
	}
	if err := n.Dir.Rename(name, target); err != nil {
		return err
	}
	n.Replaced = append(n.Replaced, tree.Name(n.Path(tree.Name(target))))
	return n.Dir.SyncDir(path.Dir(target))
}

// WriteFile writes a file of a generation, whatever has its name.
func (n *Node) WriteFile(dir, name string, text []byte) error {
	if err := n.MakeWay(dir, name); err != nil {
		return err
	}
	return disk.WriteIn(n.Dir, MetaPath(dir, name), text, 0o600)
}
