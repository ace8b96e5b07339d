package coded

// A directory that gets a result is written like this. Each process writes its files under hidden names and syncs them.
// When all have done so, the files get their names, one after the other.
//
// Of files without a manifest that is all: each is there whole or not at all, and who repeats a run that was killed has
// them all. Of a result with a manifest, the names are such that nothing in the directory has them and no manifest lists
// them. So nobody looks for them before manifest.json is renamed into place: that is the commit, of all files at once.
// Then the copy of the manifest follows, and last the files go that no manifest lists any more. In this order each
// manifest that can be read, the copy of an earlier result too, lists files that are there.
//
// A lock keeps two runs from writing one directory. Before the next run that has the lock writes, it removes what
// interrupted ones have left: coded files only where the caller lets it replace a result, as they may be those of a
// manifest that lies elsewhere.

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley/coded/manifest"
	"volley/files"
	"volley/internal/disk"
)

// hidden begins the names of files that have not got theirs yet.
const hidden = disk.Hidden

// LockName is the name of the file whose lock a run that writes a directory has, and one that reads it has shared.
const LockName = hidden + "lock"

// ErrExists says that the directory holds the result of an earlier run.
var ErrExists = errors.New("holds a " + manifest.FileName + " already")

// ErrFileExists says that a file to be written is there already.
var ErrFileExists = errors.New("is there already")

var manifests = []string{manifest.FileName, manifest.CopyName}

// An output is the files that a run gives a directory: of these names or, where that is nil, of a result with a manifest.
type output []string

// gives reports whether a run gives, replaces or removes files of that name.
func (o output) gives(name string) bool {
	_, coded := manifest.RunOf(name)
	return isHidden(name) || slices.Contains(o.names(), name) || o == nil && coded
}

// isHidden reports whether a name is one that files have until they get theirs.
func isHidden(name string) bool { return strings.HasPrefix(name, hidden) && name != LockName }

// names returns the names of files that say that there is a result.
func (o output) names() []string {
	if o == nil {
		return manifests
	}
	return o
}

// check returns an error when the files may not be written to Dir, or the run would lose what it reads.
func (r *run) check(reads []string, o output) error {
	if r.Dir == "" {
		return nil
	}
	dir, err := r.disk.Open(r.Dir)
	if err != nil {
		return nil // making it may say what is wrong
	}
	defer dir.Close()
	for _, name := range o.names() {
		file := filepath.Join(r.Dir, name)
		info, err := dir.Lstat(name)
		switch {
		case err != nil:
		case info.IsDir():
			return outputError(directoryError(file))
		case !r.Replace && o == nil:
			return inputf("%s %w", r.Dir, ErrExists)
		case !r.Replace:
			return inputf("%s %w", file, ErrFileExists)
		}
	}
	entries, _ := dir.ReadDir(".")
	for _, e := range entries {
		path := filepath.Join(r.Dir, e.Name())
		if !o.gives(e.Name()) {
			continue
		}
		if info, err := os.Stat(path); err == nil && disk.Among(info, reads) {
			return inputf("%s is an input, and %s would lose it: choose another directory", path, r.Dir)
		}
		if o == nil && !r.Replace && !isHidden(e.Name()) { // its manifest may be elsewhere
			return inputf("%s %w", path, ErrFileExists)
		}
	}
	return nil
}

// look is a check of Dir before the run has its lock. What is in the way may be half of what another run commits: the
// verdict is that of a second check, under a lock, or a [*files.BusyError].
func (r *run) look(check func() error) error {
	if err := check(); err == nil || r.Dir == "" {
		return err
	}
	_, free, err := share(r.disk, r.Dir, disk.HolderOf(r.verb, ""))
	switch {
	case err == nil:
		defer free()
	case errors.As(err, new(*files.BusyError)):
		return err
	}
	return check()
}

func directoryError(path string) error {
	return fmt.Errorf("%s is a directory: no file can take its place", path)
}

// A directory is a directory that is being written. The ranks of a run write one or several, each its own files and all
// the same manifest.
type directory struct {
	*run
	output  output
	holder  files.Holder // of the lock; Run is the same at all ranks
	dir     disk.Dir
	undo    func()            // of what was made
	unlock  func(remove bool) // nil where another rank has the lock
	writing bool              // since it was found right, until all is committed
	files   []*newFile
}

// open prepares Dir: it makes it where it does not exist, takes the lock, and removes what an interrupted run has left.
// Check is called when nobody else can change it any more. After an error, such as a [*files.BusyError] where another run
// has the lock, all is as it was.
func (r *run) open(o output, check func() error) (_ *directory, err error) {
	// The last rank removes the directory, whichever has made it. None has, before all have come to the exchange.
	d := &directory{run: r, output: o, undo: disk.Unmake(r.disk, r.Dir)}
	runs, err := exchange(r, rand.Text()[:8])
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.Discard()
			err = outputError(err)
		}
	}()
	d.holder = disk.HolderOf(r.verb, runs[0])
	d.holder.Rank = r.t.Rank()
	err = r.atAllRanks(func() error {
		if _, err := disk.Make(r.disk, r.Dir, 0o777); err != nil {
			return err
		}
		if d.dir, err = r.disk.Open(r.Dir); err != nil {
			return err
		}
		if err = d.lock(); r.t.Size() > 1 && errors.As(err, new(*files.BusyError)) {
			return nil // whose the lock is shows when all have tried
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, r.atAllRanks(func() error {
		if d.unlock == nil {
			busy := new(files.BusyError)
			if err := d.lock(); errors.As(err, &busy) && busy.Holder.Run == d.holder.Run {
				return nil
			} else if err != nil {
				return err
			}
		}
		if err := disk.Confirm(d.dir, LockName, d.holder); err != nil {
			if errors.As(err, new(*files.SharedError)) {
				err = fmt.Errorf("%w, or put it on a file system whose locks reach both: those of this one do not", err)
			}
			return err
		}
		if err := check(); err != nil {
			return err
		}
		d.writing = true
		return d.clean()
	})
}

func (d *directory) lock() (err error) {
	d.unlock, err = d.dir.Lock(LockName, false, d.holder)
	return err
}

// clean removes what no run needs any more: hidden files and, of results with a manifest, the coded files that none
// lists. Where a manifest cannot be read, what that lists may be of use yet.
func (d *directory) clean() error {
	// The run that has written a manifest may have come no further than to its name.
	if err := d.dir.SyncDir("."); err != nil {
		return err
	}
	listed, complete := d.listed()
	entries, err := d.dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		_, coded := manifest.RunOf(name)
		unlisted := d.output == nil && complete && coded && !listed[name]
		if !isHidden(name) && !unlisted || !e.Type().IsRegular() {
			continue
		}
		if err := d.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		d.Log.DebugContext(d.ctx, "removed what no result needs any more", "file", d.File(name))
	}
	return nil
}

// listed returns the names of the files that the manifests there list, and whether all of these could be read.
func (d *directory) listed() (names map[string]bool, complete bool) {
	names, complete = map[string]bool{}, true
	for _, name := range manifests {
		m, err := readManifest(d.dir, d.Dir, name)
		if err != nil {
			complete = complete && errors.Is(err, fs.ErrNotExist)
			continue
		}
		for _, f := range m.Files {
			names[string(f.Name)] = true
		}
	}
	return names, complete
}

// next returns a number for the names of coded files that are neither there nor listed: after all those, 0 without any.
func (d *directory) next() (number int64, err error) {
	names, _ := d.listed()
	entries, err := d.dir.ReadDir(".")
	for _, e := range entries {
		names[e.Name()] = true
	}
	for name := range names {
		if n, numbered := manifest.RunOf(name); numbered {
			number = max(number, n+1)
		}
	}
	return number, err
}

// A newFile is a file of the directory that is being written, front to back.
type newFile struct {
	*disk.Draft
	name   string // that Commit gives it
	digest hash.Hash
	size   int64
}

// validName reports whether a file of a directory may have that name, which neither leads elsewhere nor is hidden.
func validName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "." && len(name) <= disk.LongestName &&
		!strings.Contains(name, "\x00") && !strings.HasPrefix(name, hidden)
}

// Create opens a new file that Commit will give the name.
func (d *directory) Create(name string) (*newFile, error) {
	if err := d.free(name); err != nil {
		return nil, err
	}
	draft, err := disk.CreateDraft(d.dir, name, 0o600)
	if err != nil {
		return nil, err
	}
	file := &newFile{Draft: draft, name: name, digest: sha256.New()}
	d.files = append(d.files, file)
	return file, nil
}

// Scratch returns a file for the time of the run, which has no name.
func (d *directory) Scratch() (disk.File, error) {
	name := hidden + rand.Text()[:8]
	f, err := d.dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		d.dir.Remove(name) // where that fails, the next run removes it
	}
	return f, err
}

// free returns an error where a directory has the name.
func (d *directory) free(name string) error {
	if info, err := d.dir.Lstat(name); err == nil && info.IsDir() {
		return directoryError(d.File(name))
	}
	return nil
}

// File returns the path that the file will have when it is committed.
func (d *directory) File(name string) string { return filepath.Join(d.Dir, name) }

// WriteAt appends p, which has to begin where the file ends so far.
func (f *newFile) WriteAt(p []byte, offset int64) (int, error) {
	if offset != f.size {
		return 0, fmt.Errorf("%s: write at byte %d of a file that ends at %d", f.name, offset, f.size)
	}
	return f.Write(p)
}

// Write appends p.
func (f *newFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.digest.Write(p[:n])
	f.size += int64(n)
	return n, err
}

// Sum returns the length and the SHA-256, in hexadecimal, of what was written.
func (f *newFile) Sum() (int64, string) { return f.size, hex.EncodeToString(f.digest.Sum(nil)) }

// Commit gives the files their names and the permissions, of which the umask takes some; their owner may read and write
// them, and nobody execute. With a manifest, the result takes the place of an earlier one: whatever happens, the
// directory holds the one or the other as a whole. After an error, Discard removes what is not needed.
func (d *directory) Commit(m *manifest.Manifest, perm fs.FileMode) error {
	perm = perm&0o666 | 0o600
	steps := []func() error{func() error { return d.sync(perm) }, d.rename}
	if m != nil {
		text, err := m.Text()
		if err != nil {
			return err
		}
		write := func(name string) error {
			if d.unlock == nil {
				return nil
			}
			return disk.WriteIn(d.dir, name, text, perm)
		}
		steps = append(steps, func() error { return write(manifest.FileName) }, func() error {
			if err := write(manifest.CopyName); err != nil || d.unlock == nil {
				return err
			}
			return d.clean()
		})
	}
	for _, step := range steps {
		if err := d.atAllRanks(step); err != nil {
			return err
		}
	}
	d.writing, d.files, d.undo = false, nil, func() {}
	d.Discard()
	return nil
}

// sync makes all files and their permissions last.
func (d *directory) sync(perm fs.FileMode) error {
	permissions, err := d.permissions()
	if err != nil {
		return err
	}
	for _, f := range d.files {
		if err := cmp.Or(d.free(f.name), f.Chmod(perm&permissions), f.Finish()); err != nil {
			return err
		}
	}
	return nil
}

// rename gives all files their names, lastingly.
func (d *directory) rename() error {
	for _, f := range d.files {
		if err := f.Rename(); err != nil {
			return err
		}
	}
	return d.dir.SyncDir(".")
}

// permissions returns what a new file of the directory may have: by an empty file, as asking the umask sets it.
func (d *directory) permissions() (fs.FileMode, error) {
	f, err := disk.CreateDraft(d.dir, "umask", 0o666)
	if err != nil {
		return 0, err
	}
	defer f.Discard()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}

// Discard removes what was written and is not committed, and made directories, and lets go of the lock.
func (d *directory) Discard() {
	for _, f := range d.files {
		f.Discard()
	}
	d.files = nil
	if d.unlock != nil {
		if d.writing { // files may have their names already, and no manifest lists them
			d.clean()
		}
		d.unlock(true)
		d.unlock = nil
	}
	if d.dir != nil {
		d.dir.Close()
		d.dir = nil
	}
	d.undo() // fails, as it should, where something lies in a directory
	d.undo = func() {}
}
