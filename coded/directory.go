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
// interrupted ones have left.

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
	"strconv"
	"strings"

	"volley/internal/atomicfile"
	"volley/internal/disk"
)

// hidden begins the names of files that have not got theirs yet.
const hidden = atomicfile.Hidden

// LockName is the name of the file whose lock a run that writes a directory has, and one that reads it has shared.
const LockName = hidden + "lock"

// ErrExists says that the directory holds the result of an earlier run.
var ErrExists = errors.New("holds a " + ManifestName + " already")

// ErrFileExists says that a file to be written is there already.
var ErrFileExists = errors.New("is there already")

var manifests = []string{ManifestName, CopyName}

// A place is a directory to be written, by whom, and with what.
type place struct {
	Disk    disk.Disk
	Path    string
	Files   []string // names; nil: those of a result with a manifest
	Replace bool     // what of the result is there already

	Holder disk.Holder // of the lock; Run is the same in all processes of a run

	// Check, unless nil, is called when the lock is held, before anything changes.
	Check func() error

	// Undo, unless nil, removes the directories that the run makes, as far as they are empty.
	Undo func()

	// Together, unless nil, is for processes that run at once. They write one directory or several, each its own files
	// and all the same manifest. It does the work here and returns when all have done theirs; all call it as often.
	Together func(work func() error) error
}

// gives reports whether a run gives, replaces or removes files of that name.
func (p *place) gives(name string) bool {
	if p.Files == nil && codedName.MatchString(name) {
		return true
	}
	return isHidden(name) || slices.Contains(p.names(), name)
}

// isHidden reports whether a name is one that files have until they get theirs.
func isHidden(name string) bool { return strings.HasPrefix(name, hidden) && name != LockName }

// names returns the names of the files that say that there is a result.
func (p *place) names() []string {
	if p.Files == nil {
		return manifests
	}
	return p.Files
}

// check returns an error where a file is in the way.
func (p *place) check() error {
	dir, err := p.Disk.Open(p.Path)
	if err != nil {
		return nil // making it may say what is wrong
	}
	defer dir.Close()
	for _, name := range p.names() {
		file := filepath.Join(p.Path, name)
		there, err := dir.Lstat(name)
		switch {
		case err != nil:
		case there.IsDir():
			return directoryError(file)
		case !p.Replace && p.Files == nil:
			return fmt.Errorf("%s %w", p.Path, ErrExists)
		case !p.Replace:
			return fmt.Errorf("%s %w", file, ErrFileExists)
		}
	}
	return nil
}

// takes returns the paths of the files there that a run may replace or remove.
func (p *place) takes() (paths []string) {
	if dir, err := p.Disk.Open(p.Path); err == nil { // else there is no directory yet
		defer dir.Close()
		entries, _ := dir.ReadDir(".")
		for _, e := range entries {
			if p.gives(e.Name()) {
				paths = append(paths, filepath.Join(p.Path, e.Name()))
			}
		}
	}
	return paths
}

func directoryError(path string) error {
	return fmt.Errorf("%s is a directory: no file can take its place", path)
}

// A directory is a directory that is being written.
type directory struct {
	place
	Removed []string // names of files that interrupted runs had left

	dir     disk.Dir
	undo    func()            // of what was made
	unlock  func(remove bool) // nil where another process of the run has the lock
	writing bool              // since it was found right, until all is committed
	files   []*newFile
}

// create prepares the directory: it makes it where it does not exist, takes the lock, and removes what an interrupted
// run has left. It returns a [*disk.BusyError] where another run has the lock, and an error wrapping ErrExists or
// ErrFileExists where what is there may not be replaced. All is then as it was.
func create(at place) (_ *directory, err error) {
	at.Holder.Run = cmp.Or(at.Holder.Run, newName())
	alone := at.Together == nil
	if alone {
		at.Together = func(work func() error) error { return work() }
	}
	d := &directory{place: at, undo: func() {}}
	defer func() {
		if err != nil {
			d.Discard()
		}
	}()
	err = d.Together(func() error {
		if err := d.check(); err != nil {
			return err
		}
		undo, err := disk.Make(at.Disk, at.Path, 0o777)
		if err != nil {
			return err
		}
		if d.undo = undo; at.Undo != nil {
			d.undo = at.Undo
		}
		if d.dir, err = at.Disk.Open(at.Path); err != nil {
			return err
		}
		if err = d.lock(); !alone && errors.As(err, new(*disk.BusyError)) {
			return nil // whose the lock is shows when all have tried
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, d.Together(func() error {
		if d.unlock == nil {
			busy := new(disk.BusyError)
			if err := d.lock(); errors.As(err, &busy) && busy.Holder.Run == at.Holder.Run {
				return nil
			} else if err != nil {
				return err
			}
		}
		if err := disk.Confirm(d.dir, LockName, at.Holder); err != nil {
			if errors.As(err, new(*disk.SharedError)) {
				err = fmt.Errorf("%w, or put it on a file system whose locks reach both: those of this one do not", err)
			}
			return err
		}
		// What the directory holds may have changed until the lock was held.
		if err := d.check(); err != nil {
			return err
		}
		if d.Check != nil {
			if err := d.Check(); err != nil {
				return err
			}
		}
		d.writing = true
		return d.clean()
	})
}

func newName() string { return rand.Text()[:8] }

func (d *directory) lock() (err error) {
	d.unlock, err = d.dir.Lock(LockName, false, d.Holder)
	return err
}

// clean removes what no run needs any more: hidden files and, of results with a manifest, the coded files that none
// lists. Where a manifest cannot be read, what that lists may be of use yet.
func (d *directory) clean() error {
	// The run that has written a manifest may have come no further than to its name.
	if err := d.dir.SyncDir("."); err != nil {
		return err
	}
	listed, all := d.listed()
	entries, err := d.dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		unlisted := d.Files == nil && all && codedName.MatchString(name) && !listed[name]
		if !isHidden(name) && !unlisted || !e.Type().IsRegular() {
			continue
		}
		if err := d.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		d.Removed = append(d.Removed, name)
	}
	return nil
}

// listed returns the names of the files that the manifests there list, and whether all of these could be read.
func (d *directory) listed() (names map[string]bool, all bool) {
	names, all = map[string]bool{}, true
	for _, name := range manifests {
		m, err := readManifest(d.dir, name, d.File(name))
		if err != nil {
			all = all && errors.Is(err, fs.ErrNotExist)
			continue
		}
		for _, f := range m.Files {
			names[string(f.Name)] = true
		}
	}
	return names, all
}

// next returns a number for the names of coded files that are neither there nor listed: after all those, 0 without any.
func (d *directory) next() (number int64, err error) {
	names, _ := d.listed()
	entries, err := d.dir.ReadDir(".")
	for _, e := range entries {
		names[e.Name()] = true
	}
	for name := range names {
		if parts := codedName.FindStringSubmatch(name); parts != nil {
			n, _ := strconv.ParseInt(parts[2], 10, 64) // 0 where it has none
			number = max(number, n+1)
		}
	}
	return number, err
}

// A newFile is a file of the directory that is being written, front to back.
type newFile struct {
	*atomicfile.Draft
	name   string // that Commit gives it
	digest hash.Hash
	size   int64
}

// longestName is the bytes that file systems allow in a name.
const longestName = 255

// validName reports whether a file of a directory may have that name, which neither leads elsewhere nor is hidden.
func validName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "." && len(name) <= longestName &&
		!strings.Contains(name, "\x00") && !strings.HasPrefix(name, hidden)
}

// Create opens a new file that Commit will give the name.
func (d *directory) Create(name string) (*newFile, error) {
	if err := d.free(name); err != nil {
		return nil, err
	}
	draft, err := atomicfile.Create(d.dir, name, 0o600)
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
	if there, err := d.dir.Lstat(name); err == nil && there.IsDir() {
		return directoryError(d.File(name))
	}
	return nil
}

// File returns the path that the file will have when it is committed.
func (d *directory) File(name string) string { return filepath.Join(d.Path, name) }

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
// them, and nobody execute. With a manifest, the result takes the place of an earlier one: whatever happens, the directory holds the one or
// the other as a whole. After an error, Discard removes what is not needed.
func (d *directory) Commit(m *Manifest, perm fs.FileMode) error {
	perm = perm&0o666 | 0o600
	steps := []func() error{func() error { return d.sync(perm) }, d.rename}
	if m != nil {
		text, err := m.seal()
		if err != nil {
			return err
		}
		write := func(name string) error {
			if d.unlock == nil {
				return nil
			}
			return atomicfile.WriteIn(d.dir, name, text, perm)
		}
		steps = append(steps, func() error { return write(ManifestName) }, func() error {
			if err := write(CopyName); err != nil || d.unlock == nil {
				return err
			}
			return d.clean()
		})
	}
	for _, step := range steps {
		if err := d.Together(step); err != nil {
			return err
		}
	}
	d.writing, d.files, d.undo = false, nil, func() {}
	d.Discard()
	return nil
}

// sync makes all files and their permissions last.
func (d *directory) sync(perm fs.FileMode) error {
	most, err := d.permissions()
	if err != nil {
		return err
	}
	for _, f := range d.files {
		if err := cmp.Or(d.free(f.name), f.Chmod(perm&most), f.Finish()); err != nil {
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
	f, err := atomicfile.Create(d.dir, "umask", 0o666)
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
