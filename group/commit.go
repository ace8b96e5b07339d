package group

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"
	"volley/group/internal/tree"

	"volley/internal/atomicfile"
	"volley/internal/disk"
)

// commit puts the generation in force at the node, and names what comes back: the manifest is last.
func (x *target) commit() error {
	if err := x.node.rollForward(x.s.generation, x.s.root); err != nil || x.stage == nil {
		return err
	}
	if err := x.begin(); err != nil {
		return err
	}
	synced := map[string]bool{} // directories in which there are new names
	for _, e := range x.others {
		if x.made[e.Path] == "" {
			continue
		}
		if err := x.rename(x.made[e.Path], e, synced); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	before := len(x.left)
	for _, e := range x.files {
		if err := x.rename(x.temporary[e.Path], e, synced); err != nil {
			return err
		}
	}
	x.back.Files = len(x.files) - (len(x.left) - before)
	before = len(x.left)
	if err := x.commitLinks(synced); err != nil {
		return err
	}
	if err := x.commitSymlinks(synced); err != nil {
		return err
	}
	x.back.Others = len(x.others) - (len(x.left) - before)
	if slices.ContainsFunc(x.others, func(e *tree.Entry) bool { return e.Path == "." }) {
		x.back.Others-- // that is the node
	}
	if err := x.end(synced); err != nil {
		return err
	}
	return x.commitMeta()
}

// rename gives what was made its name. Where there cannot be such a name, that holds up nothing else.
func (x *target) rename(made string, e *tree.Entry, synced map[string]bool) error {
	err := x.setAside(e)
	if err == nil {
		err = x.node.dir.Rename(staged(made), string(e.Path))
	}
	switch {
	case errors.Is(err, syscall.EXDEV):
		err = fmt.Errorf("%s: another file system is mounted there: unmount it, and recover again", x.node.path(e.Path))
		fallthrough
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		x.left = append(x.left, err.Error())
		return nil
	case err == nil:
		synced[path.Dir(string(e.Path))] = true
	}
	return err
}

func (x *target) commitLinks(synced map[string]bool) error {
	for i, e := range x.others {
		if e.Type != tree.TypeLink {
			continue
		}
		name := fmt.Sprint("name-", i)
		if err := x.node.dir.Link(string(e.Target), staged(name)); errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrNotExist) {
			x.left = append(x.left, x.otherName(e))
			continue
		} else if err != nil {
			return err
		}
		if err := x.rename(name, e, synced); err != nil {
			return err
		}
	}
	return nil
}

func (x *target) setMeta(dir disk.Dir, name string, e *tree.Entry) error {
	unset, err := tree.SetMeta(dir, name, e)
	for _, what := range unset {
		if x.unset == nil {
			x.unset = map[string][]tree.Name{}
		}
		x.unset[what] = append(x.unset[what], e.Path)
	}
	return err
}

// notSet says what of files this process could not bring back.
func (x *target) notSet() []string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(x.unset)) {
		paths := x.unset[what]
		text := fmt.Sprintf("%s: %s", x.node.path(paths[0]), what)
		if len(paths) > 1 {
			text = fmt.Sprintf("%s and %d more: %s", x.node.path(paths[0]), len(paths)-1, what)
		}
		list = append(list, text)
	}
	return list
}

// commitSymlinks gives symbolic links their names. They are made last before, with their times.
func (x *target) commitSymlinks(synced map[string]bool) error {
	n := x.node
	var names []string
	var links []*tree.Entry
	for i, e := range x.others {
		if e.Type == tree.TypeSymlink {
			name := fmt.Sprint("link-", i)
			names, links = append(names, name), append(links, e)
			if err := x.stage.Symlink(string(e.Target), name); err != nil {
				return err
			}
			if err := x.setMeta(x.stage, name, e); err != nil {
				return err
			}
		}
	}
	if len(links) == 0 {
		return nil
	}
	if err := n.dir.SyncAll(); err != nil {
		return err
	}
	for i, e := range links {
		if err := x.rename(names[i], e, synced); err != nil {
			return err
		}
	}
	return nil
}

func (x *target) commitMeta() error {
	n, g := x.node, x.s.generation
	dir, err := n.generationDir(g, x.s.root)
	if err != nil {
		return err
	}
	if x.parity != nil {
		err := x.parity.Close()
		x.parity = nil
		if err != nil {
			return err
		}
		if err := n.dir.Rename(staged("parity"), path.Join(dir, parityFile)); err != nil {
			return err
		}
		if err := n.dir.SyncDir(dir); err != nil {
			return err
		}
		x.back.Parity = x.s.manifest.parityBytes()
	}
	records := x.s.records[n.index]
	x.back.Records = len(records) > 0
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if err := atomicfile.WriteIn(n.dir, path.Join(dir, name), records[name], 0o600); err != nil {
			return err
		}
	}
	written, err := n.complement(dir, x.s.manifest, x.s.text)
	if err != nil {
		return err
	}
	x.back.Records = x.back.Records || written
	if err := n.rollForward(g, x.s.root); err != nil {
		return err
	}
	if err := x.unstage(); err != nil {
		return err
	}
	return n.sync()
}

// setAside keeps what has the name of an entry: somebody may have written it. Earlier copies stay.
func (x *target) setAside(e *tree.Entry) error {
	n := x.node
	name := string(e.Path)
	there, err := n.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && there.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	base := path.Join(tree.MetaName, replacedName, fmt.Sprint(x.s.generation), name)
	to := base
	for i := 1; ; i++ {
		if _, err := n.dir.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = fmt.Sprint(base, ".", i)
	}
	if err := disk.MkdirAll(n.dir, path.Dir(to), 0o700); err != nil {
		return err
	}
	x.replaced = append(x.replaced, tree.Name(n.path(tree.Name(to))))
	// The name is never without a file, where the file system has links.
	if e.Type != tree.TypeDir && there.Mode().IsRegular() && n.dir.Link(name, to) == nil {
		return n.dir.SyncDir(path.Dir(to))
	}
	if err := n.dir.Rename(name, to); err != nil {
		return err
	}
	return n.dir.SyncDir(path.Dir(to))
}
