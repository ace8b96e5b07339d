package restore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Commit puts the generation in force at the node, and names what comes back: the manifest is last.
func (x *Target) Commit() error {
	if err := x.node.RollForward(x.origin.Generation, x.origin.Root); err != nil {
		return err
	}
	if x.node.Keep(); x.stage == nil {
		return nil
	}
	if err := x.begin(); err != nil {
		return err
	}
	for _, e := range x.others {
		if x.made[e.Path] != "" {
			x.commitDir(e)
		}
	}
	for _, f := range x.files {
		if f.staged != "" {
			x.commitNames(f)
		}
	}
	x.commitSymlinks()
	x.removeBeside()
	x.end()
	return x.commitMeta()
}

// name gives what was made in the stage its name, and reports whether it has it. Where that is on another file system,
// again makes it there. What cannot have its name is left.
func (x *Target) name(e *tree.Entry, p tree.Name, made string, again func(at disk.Dir, name, path string) error) bool {
	if x.lost(p) {
		return false
	}
	kept, err := x.put(e, p, staged(made), nil)
	if errors.Is(err, syscall.EXDEV) {
		err = x.nameBeside(e, p, kept, again)
	}
	if err != nil {
		x.leave(e, p, err)
		return false
	}
	x.synced[path.Dir(string(p))] = true
	return true
}

// put gives what lies somewhere the name of an entry, and returns what had the name and is kept. Somebody may give the name
// to something else at any time, and that is kept, too.
func (x *Target) put(e *tree.Entry, p tree.Name, at string, kept fs.FileInfo) (fs.FileInfo, error) {
	err := error(nil)
	for range mostPuts {
		var there fs.FileInfo
		there, err = x.node.Dir.Lstat(string(p))
		if errors.Is(err, fs.ErrNotExist) {
			if err = x.take(e, p, at); errors.Is(err, fs.ErrExist) {
				continue
			}
			return kept, err
		}
		if err == nil && kept != nil && disk.Inode(there) == disk.Inode(kept) { // it has another name by now
			return kept, x.node.Dir.Rename(at, string(p))
		}
		if err == nil {
			err = x.taken(p, there)
		}
		switch {
		case err != nil:
			return kept, err
		case there.IsDir() && e.Type == tree.TypeDir: // somebody has made it meanwhile
			return kept, nil
		case there.IsDir():
			return kept, x.node.Dir.Rename(at, string(p)) // which replaces none
		}
		named := false
		if named, err = x.keepReplaced(e, p, at, there); named || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, err
		}
		if err == nil {
			kept = there
		}
	}
	return kept, cmp.Or(err, errors.New("another program writes it all the time"))
}

// mostPuts is how often a name may be given to something else meanwhile.
const mostPuts = 10

// take gives what lies somewhere a name that nothing has. Where the file system has links it takes it from nobody who has
// come by it meanwhile.
func (x *Target) take(e *tree.Entry, p tree.Name, at string) error {
	if e.Type == tree.TypeDir { // which replaces nothing
		return x.node.Dir.Rename(at, string(p))
	}
	err := x.node.Dir.Link(at, string(p))
	switch {
	case err == nil:
		if x.node.Dir.Remove(at) != nil {
			x.named[at] = true
		}
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EXDEV):
		return err
	}
	return x.node.Dir.Rename(at, string(p))
}

// nameBeside makes something on the file system that its name is on, and gives it that. It has no part of its name
// before it is whole.
func (x *Target) nameBeside(e *tree.Entry, p tree.Name, kept fs.FileInfo, again func(at disk.Dir, name, path string) error) error {
	const name = "new"
	beside, err := x.stageBeside(path.Dir(string(p)))
	if err != nil {
		return err
	}
	at := path.Join(beside.path, name)
	if err = again(beside, name, at); err == nil {
		_, err = x.put(e, p, at, kept)
	}
	if err != nil {
		beside.Remove(name) // or the next run does, with all of it
	}
	return err
}

func (x *Target) commitDir(e *tree.Entry) {
	if x.name(e, e.Path, x.made[e.Path], func(at disk.Dir, name, _ string) error {
		info, err := x.makeDir(at, name, e)
		if err == nil {
			i := slices.IndexFunc(x.opened, func(o *openedDir) bool { return o.Path == e.Path })
			x.opened[i].inode = disk.Inode(info)
		}
		return err
	}) {
		x.Back.NonFiles++
	}
}

// commitNames gives a file its names, the first of which is that of what is staged: all others are made of it before.
func (x *Target) commitNames(f *regained) {
	for i, p := range slices.Backward(f.names) {
		made := f.staged
		if i > 0 {
			made = fmt.Sprint(f.staged, "-", i)
			if x.node.Dir.Link(staged(f.staged), staged(made)) != nil { // the file system has no links, or no more of this file
				if err := x.copy(f, x.stage, made); err != nil {
					x.leave(f.Entry, p, err)
					continue
				}
			}
		}
		if !x.name(f.Entry, p, made, func(at disk.Dir, name, path string) error { return x.copyBeside(f, p, at, name, path) }) {
			continue
		}
		if i > 0 || f.linked {
			x.Back.NonFiles++
		} else {
			x.Back.Files++
		}
	}
}

// copyBeside makes a file on another file system, as one more name of what it is there already.
func (x *Target) copyBeside(f *regained, p tree.Name, at disk.Dir, name, path string) error {
	for _, like := range []*tree.Entry{f.like, f.copied} {
		if like != nil && x.link(like, at, name, path) {
			return nil
		}
	}
	err := x.copy(f, at, name)
	if err == nil {
		var info fs.FileInfo
		if info, err = at.Lstat(name); err == nil {
			f.copied = tree.Seen(p, info)
		}
	}
	return err
}

// link makes one more name of a file, in a directory that is nobody else's, and reports whether it is that file, as it
// was seen.
func (x *Target) link(like *tree.Entry, at disk.Dir, name, path string) bool {
	if x.node.Dir.Link(string(like.Path), path) != nil {
		return false
	}
	info, err := at.Lstat(name)
	if err != nil || !like.Still(info) {
		at.Remove(name)
		return false
	}
	return true
}

// copy makes a copy of a file in the stage, which lasts.
func (x *Target) copy(f *regained, at disk.Dir, name string) error {
	from, err := x.stage.OpenFile(f.staged, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := createIn(at, name, f.Size)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for done := int64(0); err == nil && done < f.Size; done += int64(len(block)) {
		block = block[:min(int64(len(block)), f.Size-done)]
		if _, err = from.ReadAt(block, done); err == nil && (!f.Sparse || slices.ContainsFunc(block, func(b byte) bool { return b != 0 })) {
			_, err = to.WriteAt(block, done)
		}
	}
	if err == nil {
		err = cmp.Or(x.setMeta(at, name, f.Entry), to.Sync())
	}
	if err = cmp.Or(err, to.Close()); err != nil {
		at.Remove(name)
	}
	return err
}

func (x *Target) setMeta(dir disk.Dir, name string, e *tree.Entry) error {
	unset, err := tree.SetMeta(dir, name, e)
	for _, what := range unset {
		if x.unset == nil {
			x.unset = map[string][]tree.Name{}
		}
		x.unset[what] = append(x.unset[what], e.Path)
	}
	return err
}

// NotSet says what of files this process could not bring back.
func (x *Target) NotSet() []string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(x.unset)) {
		paths := x.unset[what]
		text := fmt.Sprintf("%s: %s", x.node.Path(paths[0]), what)
		if len(paths) > 1 {
			text = fmt.Sprintf("%s and %d more: %s", x.node.Path(paths[0]), len(paths)-1, what)
		}
		list = append(list, text)
	}
	return list
}

// commitSymlinks gives symbolic links their names. They are made last before, with their times.
func (x *Target) commitSymlinks() {
	make := func(at disk.Dir, name string, e *tree.Entry) error {
		if err := at.Symlink(string(e.Target), name); err != nil {
			return err
		}
		return x.setMeta(at, name, e)
	}
	names := map[*tree.Entry]string{}
	for i, e := range x.others {
		if e.Type != tree.TypeSymlink || x.lost(e.Path) {
			continue
		}
		name := fmt.Sprint("link-", i)
		if err := make(x.stage, name, e); err != nil {
			x.leave(e, e.Path, err)
			continue
		}
		names[e] = name
	}
	if len(names) == 0 {
		return
	}
	last := x.node.Dir.SyncAll()
	for _, e := range x.others {
		switch {
		case names[e] == "":
		case last != nil:
			x.leave(e, e.Path, last)
		case x.name(e, e.Path, names[e], func(at disk.Dir, name, _ string) error {
			return cmp.Or(make(at, name, e), at.SyncAll())
		}):
			x.Back.NonFiles++
		}
	}
}

// behind reports whether a file may still be as in an earlier generation: the node does not say yet that it is at this
// one, or nobody could tell such a file from one that was changed.
func (x *Target) behind() bool {
	return len(x.Left) > 0 && slices.ContainsFunc(x.condition.Findings, func(f protection.Finding) bool { return f.Kind == content.Stale })
}

func (x *Target) commitMeta() error {
	n, g := x.node, x.origin.Generation
	if x.behind() || x.entries { // what has come of the generation is made again, or nothing has to
		if x.parity != nil {
			x.parity.Close()
			x.parity = nil
		}
		return cmp.Or(x.unstage(), n.Sync())
	}
	dir, err := n.GenerationDir(g, x.origin.Root)
	if err != nil {
		return err
	}
	if x.parity != nil {
		err := x.parity.Close()
		x.parity = nil
		if err != nil {
			return err
		}
		if err := n.MakeWay(dir, store.ParityFile); err != nil {
			return err
		}
		if err := n.Dir.Rename(staged("parity"), store.MetaPath(dir, store.ParityFile)); err != nil {
			return err
		}
		if err := n.Dir.SyncDir(store.MetaPath(dir)); err != nil {
			return err
		}
		x.Back.Parity = x.origin.Manifest.ParityBytes()
	}
	records := x.records
	x.Back.Records = len(records) > 0
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if err := n.WriteFile(dir, name, records[name]); err != nil {
			return err
		}
	}
	written, err := n.Complement(dir, x.origin.Manifest, x.origin.Text)
	if err != nil {
		return err
	}
	x.Back.Records = x.Back.Records || written
	if err := n.RollForward(g, x.origin.Root); err != nil {
		return err
	}
	if err := x.unstage(); err != nil {
		return err
	}
	return n.Sync()
}
