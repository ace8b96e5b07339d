package group

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"volley/group/internal/tree"

	"volley/internal/atomicfile"
	"volley/internal/disk"
)

// A private is a directory that nobody else may write to, wherever it lies: what is made in it gets its owner, mode and
// attributes there, and is nobody else's file. Its path is for giving that its name.
type private struct {
	disk.Dir
	path string
}

// stage makes the one in .volley.
func (n *node) stage() (disk.Dir, error) {
	p, err := n.private(metaPath(stageName))
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is in the way, and holds what Volley does not remove: move it away", n.path(tree.Name(metaPath(stageName))))
	}
	if err != nil {
		return nil, err
	}
	return p.Dir, nil
}

func (n *node) private(name string) (*private, error) {
	if err := n.dir.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	dir, err := n.dir.Sub(name)
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
			err = fmt.Errorf("%s: others can write to it, or have replaced it: recover as the owner of the node", n.path(tree.Name(name)))
		}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return &private{dir, name}, nil
}

// besideName begins the names of notes in the stage of those that lie elsewhere.
const besideName = "beside-"

// stageBeside makes a stage in a directory of another file system than .volley is on. It is noted before, so that the
// next run removes what an interrupted one has left: only what is noted is Volley's there.
func (x *target) stageBeside(dir string) (*private, error) {
	if p := x.beside[dir]; p != nil {
		return p, nil
	}
	n, name := x.node, path.Join(dir, atomicfile.Hidden+x.origin.run)
	note := fmt.Sprint(besideName, len(x.beside))
	if err := atomicfile.WriteIn(n.dir, staged(note), []byte(name), 0o600); err != nil {
		return nil, err
	}
	p, err := n.private(name)
	if err != nil {
		disk.Discard(n.dir, name)
		return nil, err
	}
	x.beside[dir] = p
	return p, nil
}

// removeBeside removes stages in other file systems, which changes the times of the directories that they lie in.
func (x *target) removeBeside() {
	for _, dir := range slices.Sorted(maps.Keys(x.beside)) {
		p := x.beside[dir]
		p.Close()
		if err := disk.Discard(x.node.dir, p.path); err != nil {
			x.left = append(x.left, fmt.Sprintf("%s cannot be removed: %s", x.node.path(tree.Name(p.path)), disk.Reason(err)))
			continue
		}
		delete(x.beside, dir)
	}
}

// sweep removes the stages that an interrupted run has left in other file systems.
func (n *node) sweep() {
	list, err := n.dir.ReadDir(metaPath(stageName))
	if err != nil {
		return
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), besideName) {
			continue
		}
		name, err := disk.ReadText(n.dir, staged(e.Name()), mostNode)
		if err == nil && strings.HasPrefix(path.Base(string(name)), atomicfile.Hidden) {
			disk.Discard(n.dir, string(name)) // what is left of it is new, and nobody's
		}
	}
}

func sameOwner(a, b fs.FileInfo) bool {
	uid, _, _ := disk.Owner(a)
	other, _, _ := disk.Owner(b)
	return uid == other
}

func staged(name string) string { return metaPath(stageName + "/" + name) }

func (x *target) create(name string, size int64) (disk.File, error) {
	return createIn(x.stage, name, size)
}

func createIn(dir disk.Dir, name string, size int64) (disk.File, error) {
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
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
	x.removeBeside()
	entries, err := x.stage.ReadDir(".")
	for _, e := range entries {
		if len(x.beside) > 0 && strings.HasPrefix(e.Name(), besideName) {
			continue
		}
		err = errors.Join(err, x.stage.Remove(e.Name()))
	}
	if len(x.opened) > 0 || len(x.beside) > 0 {
		return err
	}
	return errors.Join(err, x.node.dir.Remove(metaPath(stageName)))
}
