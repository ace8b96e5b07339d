package group

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"volley/group/internal/tree"

	"volley/internal/disk"
)

// stage makes a directory that nobody else may write to, wherever the node lies: what is made in it gets its owner,
// mode and attributes there, and is nobody else's file. Its path is for giving that its name.
func (n *node) stage() (disk.Dir, error) {
	err := n.dir.Mkdir(metaPath(stageName), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is in the way, and holds what Volley does not remove: move it away", n.path(tree.Name(metaPath(stageName))))
	}
	if err != nil {
		return nil, err
	}
	dir, err := n.dir.Sub(metaPath(stageName))
	if err != nil {
		return nil, err
	}
	const probe = "mine"
	f, err := dir.OpenFile(probe, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		mine, err1 := f.Stat()
		is, err2 := dir.Lstat(".")
		err = errors.Join(err1, err2, f.Close(), dir.Remove(probe))
		// A file system without modes shows the same of all files.
		if err == nil && (!sameOwner(mine, is) || is.Mode().Perm()&0o022 != 0 && mine.Mode().Perm()&0o022 == 0) {
			err = fmt.Errorf("%s: others can write to it, or have replaced it: recover as the owner of the node", n.path(tree.Name(metaPath(stageName))))
		}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

func sameOwner(a, b fs.FileInfo) bool {
	uid, _, _ := disk.Owner(a)
	other, _, _ := disk.Owner(b)
	return uid == other
}

func staged(name string) string { return metaPath(stageName + "/" + name) }

func (x *target) create(name string, size int64) (disk.File, error) {
	f, err := x.stage.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// unstage removes the stage. It stays, empty, where directories of the node are open yet, for the next recovery.
func (x *target) unstage() error {
	if x.stage == nil {
		return nil
	}
	defer func() {
		x.stage.Close()
		x.stage = nil
	}()
	entries, err := x.stage.ReadDir(".")
	for _, e := range entries {
		err = errors.Join(err, x.stage.Remove(e.Name()))
	}
	if x.opened != nil {
		return err
	}
	return errors.Join(err, x.node.dir.Remove(metaPath(stageName)))
}
