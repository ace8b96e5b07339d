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
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Commit puts the generation in force at the node, and names what comes back. The manifest is last.
func (x *Target) Commit() error {
	if err := x.node.RollForward(x.origin.Generation, x.origin.Root); err != nil {
		return err
	}
	if x.node.Keep(); x.stage == nil {
		return nil
	}
	if err := x.openDirs(); err != nil {
		return err
	}
	for _, e := range x.nonFiles {
		if x.madeDirs[e.Path] != "" {
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
	x.closeDirs()
	return x.commitMeta()
}

// giveName gives a staged entry its name, and reports whether it has it. If the name is on another file system, remake
// makes the entry there. An entry that cannot get its name is noted.
func (x *Target) giveName(e *tree.Entry, p tree.Name, stagedName string, remake func(dir disk.Dir, name, path string) error) bool {
	if x.inFailedDir(p) {
		return false
	}
	kept, err := x.assignName(e, p, stagedPath(stagedName), nil)
	if errors.Is(err, syscall.EXDEV) {
		err = x.nameBeside(e, p, kept, remake)
	}
	if err != nil {
		x.noteFailed(e, p, err)
		return false
	}
	x.synced[path.Dir(string(p))] = true
	return true
}

// assignName gives the source the name of an entry, and returns what had the name and is kept. A program may take the
// name at any time, and what it put there is kept, too.
func (x *Target) assignName(e *tree.Entry, p tree.Name, source string, kept fs.FileInfo) (fs.FileInfo, error) {
	err := error(nil)
	for range mostPuts {
		var existing fs.FileInfo
		existing, err = x.node.Dir.Lstat(string(p))
		if errors.Is(err, fs.ErrNotExist) {
			if err = x.claimFreeName(e, p, source); errors.Is(err, fs.ErrExist) {
				continue
			}
			return kept, err
		}
		if err == nil && kept != nil && disk.Inode(existing) == disk.Inode(kept) { // it has another name by now
			return kept, x.node.Dir.Rename(source, string(p))
		}
		if err == nil {
			err = x.checkNameFree(p, existing)
		}
		switch {
		case err != nil:
			return kept, err
		case existing.IsDir() && e.Type == tree.TypeDir: // somebody has made it meanwhile
			return kept, nil
		case existing.IsDir():
			return kept, x.node.Dir.Rename(source, string(p)) // a rename replaces no directory
		}
		named := false
		if named, err = x.keepReplaced(e, p, source, existing); named || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, err
		}
		if err == nil {
			kept = existing
		}
	}
	return kept, cmp.Or(err, errors.New("another program writes it all the time"))
}

// mostPuts is how often a name may be given to something else meanwhile.
const mostPuts = 10

// claimFreeName gives the source a name that nothing has. Where the file system has links, it replaces nothing that has
// taken the name meanwhile.
func (x *Target) claimFreeName(e *tree.Entry, p tree.Name, source string) error {
	if e.Type == tree.TypeDir { // a rename of a directory replaces nothing
		return x.node.Dir.Rename(source, string(p))
	}
	err := x.node.Dir.Link(source, string(p))
	switch {
	case err == nil:
		if x.node.Dir.Remove(source) != nil {
			x.named[source] = true
		}
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EXDEV):
		return err
	}
	return x.node.Dir.Rename(source, string(p))
}

// nameBeside makes an entry on the file system of its name, and then gives it the name. So the name never has part of the
// entry.
func (x *Target) nameBeside(e *tree.Entry, p tree.Name, kept fs.FileInfo, remake func(dir disk.Dir, name, path string) error) error {
	const name = "new"
	nearStage, err := x.stageBeside(path.Dir(string(p)))
	if err != nil {
		return err
	}
	source := path.Join(nearStage.path, name)
	if err = remake(nearStage, name, source); err == nil {
		_, err = x.assignName(e, p, source, kept)
	}
	if err != nil {
		nearStage.Remove(name) // if this fails, the next run removes the whole stage
	}
	return err
}

func (x *Target) commitDir(e *tree.Entry) {
	if x.giveName(e, e.Path, x.madeDirs[e.Path], func(dir disk.Dir, name, _ string) error {
		info, err := x.makeDir(dir, name, e)
		if err == nil {
			i := slices.IndexFunc(x.opened, func(o *openedDir) bool { return o.Path == e.Path })
			x.opened[i].inode = disk.Inode(info)
		}
		return err
	}) {
		x.Recovered.NonFiles++
	}
}

// commitNames gives a file its names. The others are made first, from the staged file, as links or copies.
func (x *Target) commitNames(f *regained) {
	for i, p := range slices.Backward(f.names) {
		name := f.staged
		if i > 0 {
			name = fmt.Sprint(f.staged, "-", i)
			if x.node.Dir.Link(stagedPath(f.staged), stagedPath(name)) != nil { // the file system has no links, or no more of this file
				if err := x.copy(f, x.stage, name); err != nil {
					x.noteFailed(f.Entry, p, err)
					continue
				}
			}
		}
		if !x.giveName(f.Entry, p, name, func(dir disk.Dir, name, path string) error { return x.copyBeside(f, p, dir, name, path) }) {
			continue
		}
		if i > 0 || f.linked {
			x.Recovered.NonFiles++
		} else {
			x.Recovered.Files++
		}
	}
}

// copyBeside makes a file on another file system: as a link to a name that it has there, or else as a copy.
func (x *Target) copyBeside(f *regained, p tree.Name, dir disk.Dir, name, path string) error {
	for _, entry := range []*tree.Entry{f.intactName, f.copied} {
		if entry != nil && x.link(entry, dir, name, path) {
			return nil
		}
	}
	err := x.copy(f, dir, name)
	if err == nil {
		var info fs.FileInfo
		if info, err = dir.Lstat(name); err == nil {
			f.copied = tree.Seen(p, info)
		}
	}
	return err
}

// link links a file into a private directory, and reports whether it is still the file that was seen.
func (x *Target) link(entry *tree.Entry, dir disk.Dir, name, path string) bool {
	if x.node.Dir.Link(string(entry.Path), path) != nil {
		return false
	}
	info, err := dir.Lstat(name)
	if err != nil || !entry.Still(info) {
		dir.Remove(name)
		return false
	}
	return true
}

// copy makes a copy of a file in the stage, which lasts.
func (x *Target) copy(f *regained, dir disk.Dir, name string) error {
	source, err := x.stage.OpenFile(f.staged, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := createIn(dir, name, f.Size)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for offset := int64(0); err == nil && offset < f.Size; offset += int64(len(block)) {
		block = block[:min(int64(len(block)), f.Size-offset)]
		if _, err = source.ReadAt(block, offset); err == nil && !(f.Sparse && disk.Zeros(block)) {
			_, err = target.WriteAt(block, offset)
		}
	}
	if err == nil {
		err = cmp.Or(x.setMeta(dir, name, f.Entry), target.Sync())
	}
	if err = cmp.Or(err, target.Close()); err != nil {
		dir.Remove(name)
	}
	return err
}

func (x *Target) setMeta(dir disk.Dir, name string, e *tree.Entry) error {
	unset, err := tree.SetMeta(dir, name, e)
	for _, property := range unset {
		if x.unset == nil {
			x.unset = map[string][]tree.Name{}
		}
		x.unset[property] = append(x.unset[property], e.Path)
	}
	return err
}

// UnsetNotes returns notes on metadata that this process could not restore.
func (x *Target) UnsetNotes() []string {
	var list []string
	for _, property := range slices.Sorted(maps.Keys(x.unset)) {
		paths := x.unset[property]
		text := fmt.Sprintf("%s: %s", x.node.Path(paths[0]), property)
		if len(paths) > 1 {
			text = fmt.Sprintf("%s and %d more: %s", x.node.Path(paths[0]), len(paths)-1, property)
		}
		list = append(list, text)
	}
	return list
}

// commitSymlinks makes symbolic links with their times in the stage, syncs them, and gives them their names.
func (x *Target) commitSymlinks() {
	create := func(dir disk.Dir, name string, e *tree.Entry) error {
		if err := dir.Symlink(string(e.Target), name); err != nil {
			return err
		}
		return x.setMeta(dir, name, e)
	}
	names := map[*tree.Entry]string{}
	for i, e := range x.nonFiles {
		if e.Type != tree.TypeSymlink || x.inFailedDir(e.Path) {
			continue
		}
		name := fmt.Sprint("link-", i)
		if err := create(x.stage, name, e); err != nil {
			x.noteFailed(e, e.Path, err)
			continue
		}
		names[e] = name
	}
	if len(names) == 0 {
		return
	}
	last := x.node.Dir.SyncAll()
	for _, e := range x.nonFiles {
		switch {
		case names[e] == "":
		case last != nil:
			x.noteFailed(e, e.Path, last)
		case x.giveName(e, e.Path, names[e], func(dir disk.Dir, name, _ string) error {
			return cmp.Or(create(dir, name, e), dir.SyncAll())
		}):
			x.Recovered.NonFiles++
		}
	}
}

// behind reports whether a file may still be as in an earlier generation: the node does not say yet that it is at this
// one, or nobody could tell such a file from one that was changed.
func (x *Target) behind() bool {
	return len(x.Unfinished) > 0 && slices.ContainsFunc(x.condition.Findings, func(f protection.Finding) bool { return f.Kind == content.Stale })
}

func (x *Target) commitMeta() error {
	n, g := x.node, x.origin.Generation
	if x.behind() || x.entriesOnly { // a node that is behind gets its metadata from a later run
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
		if err := n.PutParity(dir, stagedPath("parity")); err != nil {
			return err
		}
		x.Recovered.Parity = x.origin.Manifest.ParityBytes()
	}
	records := x.records
	x.Recovered.Records = len(records) > 0
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if err := n.WriteFile(dir, name, records[name]); err != nil {
			return err
		}
	}
	written, err := n.Complement(dir, x.origin.Manifest, x.origin.Text)
	if err != nil {
		return err
	}
	x.Recovered.Records = x.Recovered.Records || written
	if err := n.RollForward(g, x.origin.Root); err != nil {
		return err
	}
	if err := x.unstage(); err != nil {
		return err
	}
	return n.Sync()
}
