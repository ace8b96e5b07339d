package coded

// A directory that gets a result is written like this. Files are written under hidden names and synced. Then a journal
// that lists them is renamed into place: that is the commit, and after it the files get their names. Whoever finds a
// journal takes the files it lists for those of the names they are to get, so that a run that is killed leaves the
// earlier result or its own, whole. A lock keeps two runs from writing one directory; the next run that has the lock
// does what the journal lists and removes other hidden files.

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

	"volley/internal/atomicfile"
	"volley/internal/disk"
)

// hidden begins the names of files that are not committed yet.
const hidden = atomicfile.Hidden

// LockName is the name of the file whose lock a run that writes a directory has, and one that reads it has shared.
const LockName = hidden + "lock"

// ErrExists says that the directory holds the result of an earlier run.
var ErrExists = errors.New("holds a " + ManifestName + " already")

// ErrFileExists says that a file to be written is there already.
var ErrFileExists = errors.New("is there already")

// A place is a directory to be written, and by whom.
type place struct {
	Disk   disk.Disk
	Path   string
	Holder disk.Holder // of the lock; Run is the same in all processes of a run

	// Check, unless nil, is called when the lock is held, before anything changes.
	Check func() error

	// Undo, unless nil, removes the directories that the run makes, as far as they are empty.
	Undo func()

	// Together, unless nil, is for processes that run at once. They write one directory or several, each its own files
	// and all the same manifest. It does the work here and returns when all have done theirs; all call it as often.
	Together func(work func() error) error
}

// A directory is a directory that is being written.
type directory struct {
	place
	Finished bool     // a commit that an interrupted run had begun was finished
	Removed  []string // names of files that interrupted runs had left

	dir    disk.Dir
	names  []string          // of the files that CommitFiles commits
	undo   func()            // of what was made
	unlock func(remove bool) // nil where another process of the run has the lock
	files  []*newFile

	// promised says that another process, which has the lock, may commit the files.
	promised bool
}

// create prepares the directory for files, those of a result with a manifest or others: it makes it where it does not
// exist, takes the lock, finishes what an interrupted run has committed and removes what else one has left. It returns
// a [*disk.BusyError] where another run has the lock, and an error wrapping exists when one of the names is there and
// replace is false. All is then as it was.
func create(at place, names []string, exists error, replace bool) (_ *directory, err error) {
	at.Holder.Run = cmp.Or(at.Holder.Run, newName())
	alone := at.Together == nil
	if alone {
		at.Together = func(work func() error) error { return work() }
	}
	d := &directory{place: at, names: names, undo: func() {}}
	defer func() {
		if err != nil {
			d.Discard()
		}
	}()
	err = d.Together(func() error {
		if err := check(at.Disk, at.Path, names, exists, replace); err != nil {
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
		if err := check(at.Disk, at.Path, names, exists, replace); err != nil {
			return err
		}
		if d.Check != nil {
			if err := d.Check(); err != nil {
				return err
			}
		}
		return d.clean()
	})
}

func newName() string { return rand.Text()[:8] }

func (d *directory) lock() (err error) {
	d.unlock, err = d.dir.Lock(LockName, false, d.Holder)
	return err
}

// clean finishes what an interrupted run has committed, and removes what else there is of such.
func (d *directory) clean() error {
	j, err := readJournal(d.dir)
	if err != nil {
		return err
	}
	if d.Finished = j != nil; d.Finished {
		if err := j.finish(d.dir); err != nil {
			return err
		}
	}
	entries, err := d.dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isHidden(e) {
			continue
		}
		if err := d.dir.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		d.Removed = append(d.Removed, e.Name())
	}
	return nil
}

var manifests = []string{ManifestName, CopyName}

// check returns an error where one of the files exists.
func check(on disk.Disk, path string, names []string, exists error, replace bool) error {
	dir, err := on.Open(path)
	if err != nil {
		return nil // making it may say what is wrong
	}
	defer dir.Close()
	j := journalOf(dir)
	for _, name := range names {
		file := filepath.Join(path, name)
		there, err := dir.Lstat(j.where(dir, name))
		switch {
		case err != nil:
		case there.IsDir():
			return directoryError(file)
		case !replace && exists == ErrExists:
			return fmt.Errorf("%s %w", path, exists)
		case !replace:
			return fmt.Errorf("%s %w", file, exists)
		}
	}
	return nil
}

// replaces returns the paths that a run replaces or removes when it writes files of the given names and, if asked, a
// manifest: these, the files that the manifest there is lists, and what a run has left. Not all of them need exist.
func replaces(on disk.Disk, path string, names []string, manifest bool) []string {
	names = slices.Clone(names)
	if manifest {
		names = slices.Concat(manifests, names)
	}
	if dir, err := on.Open(path); err == nil { // else there is no directory yet
		defer dir.Close()
		if manifest {
			if old, err := read(dir, path); err == nil {
				for _, f := range old.Manifest.Files {
					names = append(names, f.Name)
				}
			}
		}
		entries, _ := dir.ReadDir(".")
		for _, e := range entries {
			if isHidden(e) {
				names = append(names, e.Name())
			}
		}
		j := journalOf(dir)
		for _, f := range j.Files {
			names = append(names, f.To)
		}
		names = append(names, j.Remove...)
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(path, name)
	}
	return paths
}

func directoryError(path string) error {
	return fmt.Errorf("%s is a directory: no file can take its place", path)
}

// isHidden reports whether a file is what a run has left.
func isHidden(e fs.DirEntry) bool {
	return strings.HasPrefix(e.Name(), hidden) && e.Type().IsRegular() && e.Name() != LockName && e.Name() != journalName
}

// A newFile is a file of the directory that is being written, front to back.
type newFile struct {
	disk.File
	name   string // that Commit gives it
	draft  string // that it has until then
	digest hash.Hash
	size   int64
}

// longestName is the bytes that file systems allow in a name.
const longestName = 255

// validName reports whether a file of a directory may have that name, which neither leads elsewhere nor is hidden.
func validName(name string) bool { return isName(name) && !strings.HasPrefix(name, hidden) }

func isName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "." && len(name) <= longestName &&
		!strings.Contains(name, "\x00")
}

// Create opens a new file that Commit will give the name. It may be called for one name only once.
func (d *directory) Create(name string) (*newFile, error) {
	if err := d.free(name); err != nil {
		return nil, err
	}
	draft := d.draft(name)
	f, err := d.dir.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // follows no link
	if err != nil {
		return nil, err
	}
	file := &newFile{File: f, name: name, draft: draft, digest: sha256.New()}
	d.files = append(d.files, file)
	return file, nil
}

// draft returns the name of a file until the commit, which is the same in all processes.
func (d *directory) draft(name string) string {
	draft := hidden + d.Holder.Run + "-" + name
	if len(draft) > longestName { // though the name alone may be short enough
		draft = fmt.Sprintf("%s%s-%x", hidden, d.Holder.Run, sha256.Sum256([]byte(name)))
	}
	return draft
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

// Commit puts the files and the manifest in the place of an earlier result, and gives them the permissions, of which
// the umask takes some; their owner may read and write them. Files that the new one does not have are removed. Whatever
// happens, the directory then holds the earlier result or the new one as a whole, as [readStored] finds it; after an
// error, Discard removes what is not needed.
func (d *directory) Commit(m *Manifest, perm fs.FileMode) error {
	text, err := m.seal()
	if err != nil {
		return err
	}
	var j journal
	for _, f := range m.Files { // also those that other processes have written here
		j.add(d.draft(f.Name), f.Name)
	}
	if d.unlock != nil {
		for _, name := range manifests {
			f, err := d.Create(name)
			if err != nil {
				return err
			}
			if _, err := f.Write(text); err != nil {
				return err
			}
			j.add(f.draft, name)
		}
		if old, err := read(d.dir, d.Path); err == nil {
			for _, f := range old.Manifest.Files {
				if !slices.ContainsFunc(m.Files, func(now Entry) bool { return now.Name == f.Name }) {
					j.Remove = append(j.Remove, f.Name)
				}
			}
		}
	}
	return d.commit(j, perm|0o600)
}

// CommitFiles puts the files in place of those with their names, as [directory.Commit] does, without a manifest.
func (d *directory) CommitFiles(perm fs.FileMode) error {
	var j journal
	for _, name := range d.names { // also those that other processes have written here
		j.add(d.draft(name), name)
	}
	return d.commit(j, perm|0o600)
}

// commit does what the journal lists.
func (d *directory) commit(j journal, perm fs.FileMode) error {
	for _, step := range []func() error{
		func() error {
			err := d.sync(perm)
			d.promised = err == nil
			return err
		}, func() error {
			if d.unlock == nil {
				return nil
			}
			for _, f := range j.Files {
				if err := d.free(f.To); err != nil {
					return err
				}
			}
			return j.write(d.dir, perm)
		}, func() error {
			if d.unlock != nil {
				return nil
			}
			for _, f := range d.files { // those that this machine knows of for certain
				if err := d.dir.Rename(f.draft, f.name); err != nil {
					return err
				}
			}
			return d.dir.SyncDir(".")
		}, func() error {
			if d.unlock == nil {
				return nil
			}
			return j.finish(d.dir)
		},
	} {
		if err := d.Together(step); err != nil {
			return err
		}
	}
	d.files, d.undo = nil, func() {}
	d.Discard()
	return nil
}

// sync makes all files, their permissions and their hidden names last.
func (d *directory) sync(perm fs.FileMode) error {
	most, err := d.permissions()
	if err != nil {
		return err
	}
	for _, f := range d.files {
		if err := cmp.Or(f.Chmod(perm&most), f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return d.dir.SyncDir(".")
}

// permissions returns what a new file of the directory may have: by an empty file, as asking the umask sets it.
func (d *directory) permissions() (fs.FileMode, error) {
	name := hidden + rand.Text()[:8]
	f, err := d.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return 0, err
	}
	d.files = append(d.files, &newFile{File: f, draft: name}) // for Discard, if it cannot be removed here
	info, err := f.Stat()
	if err = errors.Join(err, f.Close(), d.dir.Remove(name)); err != nil {
		return 0, err
	}
	d.files = d.files[:len(d.files)-1]
	return info.Mode().Perm(), nil
}

// Discard removes what was written and is not committed, and made directories, and lets go of the lock.
func (d *directory) Discard() {
	for _, f := range d.files {
		f.Close()
	}
	if d.dir != nil && (d.unlock != nil || !d.promised) {
		if _, err := d.dir.Lstat(journalName); errors.Is(err, fs.ErrNotExist) { // else they are committed, or may be
			for _, f := range d.files {
				d.dir.Remove(f.draft)
			}
		}
	}
	d.files = nil
	if d.unlock != nil {
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
