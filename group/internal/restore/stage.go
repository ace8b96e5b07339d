package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

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

// makeStage makes the stage in .volley.
func makeStage(n *store.Node) (disk.Dir, error) {
	p, err := privateDir(n, store.MetaPath(store.StageName))
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is in the way, and holds what Volley does not remove: move it away", n.Path(tree.Name(store.MetaPath(store.StageName))))
	}
	if err != nil {
		return nil, err
	}
	return p.Dir, nil
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

// besideName begins the names of notes in the stage on stages that lie elsewhere.
const besideName = "beside-"

// stageBeside makes a stage in a directory of another file system than .volley is on. It is noted before, so that the
// next run removes what an interrupted one has left: only what is noted is Volley's there.
func (x *Target) stageBeside(dir string) (*private, error) {
	if p := x.nearStages[dir]; p != nil {
		return p, nil
	}
	n, name := x.node, path.Join(dir, disk.Hidden+x.origin.Run)
	note := fmt.Sprint(besideName, len(x.nearStages))
	if err := disk.WriteIn(n.Dir, stagedPath(note), []byte(name), 0o600); err != nil {
		return nil, err
	}
	p, err := privateDir(n, name)
	if err != nil {
		disk.Discard(n.Dir, name)
		return nil, err
	}
	x.nearStages[dir] = p
	return p, nil
}

// removeBeside removes stages in other file systems, which changes the times of the directories that they lie in.
func (x *Target) removeBeside() {
	for _, dir := range slices.Sorted(maps.Keys(x.nearStages)) {
		p := x.nearStages[dir]
		p.Close()
		if err := disk.Discard(x.node.Dir, p.path); err != nil {
			x.Unfinished = append(x.Unfinished, fmt.Sprintf("%s cannot be removed: %s", x.node.Path(tree.Name(p.path)), disk.Reason(err)))
			continue
		}
		delete(x.nearStages, dir)
	}
}

// Sweep removes the stages that an interrupted run has left in other file systems.
func Sweep(n *store.Node) {
	list, err := n.Dir.ReadDir(store.MetaPath(store.StageName))
	if err != nil {
		return
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), besideName) {
			continue
		}
		name, err := disk.ReadText(n.Dir, stagedPath(e.Name()), store.MostNode)
		if err == nil && strings.HasPrefix(path.Base(string(name)), disk.Hidden) {
			disk.Discard(n.Dir, string(name)) // everything in it is Volley's
		}
	}
}

func sameOwner(a, b fs.FileInfo) bool {
	uid, _, _ := disk.Owner(a)
	uid2, _, _ := disk.Owner(b)
	return uid == uid2
}

func stagedPath(name string) string { return store.MetaPath(store.StageName + "/" + name) }

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
	if x.stage == nil {
		return nil
	}
	defer func() {
		x.stage.Close()
		x.stage = nil
	}()
	x.removeBeside()
	stays := false
	entries, err := x.stage.ReadDir(".")
	for _, e := range entries {
		if len(x.nearStages) > 0 && strings.HasPrefix(e.Name(), besideName) {
			continue
		}
		failed := x.stage.Remove(e.Name())
		if stagedFile := stagedPath(e.Name()); failed != nil && x.named[stagedFile] {
			stays = true
			x.Unfinished = append(x.Unfinished, fmt.Sprintf("%s cannot be removed: %s", x.node.Path(tree.Name(stagedFile)), disk.Reason(failed)))
			continue
		}
		err = errors.Join(err, failed)
	}
	if len(x.opened) > 0 || len(x.nearStages) > 0 || stays {
		return err
	}
	return errors.Join(err, x.node.Dir.Remove(store.MetaPath(store.StageName)))
}
