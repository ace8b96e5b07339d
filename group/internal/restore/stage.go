package restore

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

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// A private is a directory that nobody else may write to. Its entries get their owner, mode and attributes there. Its
// path serves to give them their names.
type private struct {
	disk.Dir
	path string
}

// entry returns the path of an entry.
func (p *private) entry(name string) string { return path.Join(p.path, name) }

// stagePath is where what comes back is made, but for entries where .volley lies elsewhere.
var stagePath = store.MetaPath(store.StageName)

// makeStage makes the stage in .volley. A directory that a power cut has put back into an earlier one may have what somebody
// has written since it had its name: it makes way with that, and is kept. Where .volley lies elsewhere, entries have a stage
// in the node itself. That is noted before, so that the next run removes what an interrupted one has left.
func (x *Target) makeStage() (err error) {
	n := x.node
	if err = n.MakeWay(store.StageName); err == nil {
		x.base, err = privateDir(n, stagePath)
	}
	if x.stage = x.base; err != nil || n.Meta == "" || len(x.condition.Restore) == 0 {
		return err
	}
	name := disk.Hidden + x.origin.Run
	if err := cmp.Or(disk.WriteIn(n.Dir, x.base.entry(besideName), []byte(name), 0o600), n.Sync()); err != nil {
		return err
	}
	p, err := privateDir(n, name)
	if err != nil {
		disk.Discard(n.Dir, name)
		return err
	}
	x.stage = p
	return nil
}

func privateDir(n *store.Node, name string) (*private, error) {
	if err := n.Dir.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	dir, err := n.Dir.Sub(name)
	if err != nil {
		return nil, err
	}
	const probe = "mine"
	f, err := dir.OpenFile(probe, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		mine, err1 := f.Stat()
		dirInfo, err2 := dir.Lstat(".")
		err = errors.Join(err1, err2, f.Close(), dir.Remove(probe))
		// A file system without modes shows the same of all files.
		if err == nil && (!sameOwner(mine, dirInfo) || dirInfo.Mode().Perm()&0o022 != 0 && mine.Mode().Perm()&0o022 == 0) {
			err = fmt.Errorf("%s: others can write to it, or have replaced it: recover as the owner of the node", n.Path(tree.Name(name)))
		}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return &private{dir, name}, nil
}

// parityName is the name of parity in the stage.
const parityName = "parity"

// besideName is the note in the stage on the one in the node itself.
const besideName = "beside"

// removeBeside removes the stage in the node itself, which changes the time of its directory.
func (x *Target) removeBeside() {
	if x.stage == x.base {
		return
	}
	x.stage.Close()
	if err := disk.Discard(x.node.Dir, x.stage.path); err != nil {
		x.noteUnfinished(tree.Name(x.stage.path), " cannot be removed", err)
		return
	}
	x.stage = x.base
}

// Sweep removes the stage that an interrupted run has left in the node itself.
func Sweep(n *store.Node) {
	name, err := disk.ReadText(n.Dir, path.Join(stagePath, besideName), store.MostNode)
	if err == nil && strings.HasPrefix(string(name), disk.Hidden) && !strings.Contains(string(name), "/") {
		disk.Discard(n.Dir, string(name)) // everything in it is Volley's
	}
}

func sameOwner(a, b fs.FileInfo) bool {
	uid, _, _ := disk.Owner(a)
	uid2, _, _ := disk.Owner(b)
	return uid == uid2
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

// unstage removes the stage. It leaves a stage for the next recovery if directories of the node are still open, or
// entries cannot be removed.
func (x *Target) unstage() error {
	if x.base == nil {
		return nil
	}
	defer func() {
		x.base.Close()
		x.base, x.stage = nil, nil
	}()
	if x.removeBeside(); x.stage != x.base {
		return nil
	}
	stays := len(x.opened) > 0
	entries, err := x.base.ReadDir(".")
	for _, e := range entries {
		if err := x.base.Remove(e.Name()); err != nil {
			stays = true
			x.noteUnfinished(tree.Name(x.base.entry(e.Name())), " cannot be removed", err)
		}
	}
	if err != nil || stays {
		return err
	}
	return x.node.Dir.Remove(stagePath)
}

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
	if e.Type == tree.TypeDir || errors.Is(err, errors.ErrUnsupported) || n.Meta != "" && errors.Is(err, syscall.EXDEV) {
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
	if n.Meta != "" && errors.Is(err, syscall.EXDEV) {
		if err = copyReplaced(n, name, target, existing); err == nil && e.Type == tree.TypeDir {
			err = n.Dir.Remove(name) // a directory does not replace a file
		}
	}
	return err
}

// copyReplaced copies a file or symbolic link that lies on another file system than .volley.
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
