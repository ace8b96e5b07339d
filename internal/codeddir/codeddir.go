// Package codeddir writes the directory that holds the coded packets of a run:
// one file per processor, or one of all, and a manifest. It also writes
// directories of files alone, such as decoded ones.
//
// Files are written under hidden names, synced and then renamed, the manifest
// last: it is the commit, so that a directory with a manifest is whole, whatever
// happened on the way. Without a manifest each file is whole.
package codeddir

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley/internal/atomicfile"
)

// hidden begins the names of files that are not committed yet.
const hidden = atomicfile.Hidden

// ErrExists says that the directory holds the result of an earlier run.
var ErrExists = errors.New("holds a " + ManifestName + " already")

// ErrFileExists says that a file to be written is there already.
var ErrFileExists = errors.New("is there already")

// A Dir is a directory that is being written.
type Dir struct {
	path  string
	run   string   // tells the hidden files of this run from those of others
	made  []string // directories that Create made, the innermost first
	files []*File
}

// Create prepares the directory at path for a result with a manifest: it makes it
// where it does not exist and removes what an interrupted run has left. It
// returns an error wrapping [ErrExists] when the directory holds a manifest and
// replace is false.
func Create(path string, replace bool) (*Dir, error) {
	if err := Check(path, replace); err != nil {
		return nil, err
	}
	return prepare(path)
}

// CreateFiles is [Create] for files of the given names and no manifest. It returns
// an error wrapping [ErrFileExists] when one of them exists and replace is false.
func CreateFiles(path string, names []string, replace bool) (*Dir, error) {
	if err := CheckFiles(path, names, replace); err != nil {
		return nil, err
	}
	return prepare(path)
}

func prepare(path string) (_ *Dir, err error) {
	d := &Dir{path: path, run: rand.Text()[:8]}
	defer func() {
		if err != nil {
			d.Discard()
		}
	}()
	for up := filepath.Clean(path); ; up = filepath.Dir(up) {
		if _, err := os.Lstat(up); !errors.Is(err, fs.ErrNotExist) {
			break // at the latest for "." or "/"
		}
		d.made = append(d.made, up)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	return d, removeHidden(path)
}

// Check returns the error that Create would return for what the directory holds,
// and changes nothing.
func Check(path string, replace bool) error {
	manifest := filepath.Join(path, ManifestName)
	there, err := os.Lstat(manifest)
	switch {
	case err != nil:
		return nil
	case there.IsDir():
		return directoryError(manifest)
	case !replace:
		return fmt.Errorf("%s %w", path, ErrExists)
	}
	return nil
}

// CheckFiles returns the error that CreateFiles would return for what the directory
// holds, and changes nothing.
func CheckFiles(path string, names []string, replace bool) error {
	for _, name := range names {
		file := filepath.Join(path, name)
		there, err := os.Lstat(file)
		switch {
		case err != nil:
		case there.IsDir():
			return directoryError(file)
		case !replace:
			return fmt.Errorf("%s %w", file, ErrFileExists)
		}
	}
	return nil
}

// Replaces returns the paths that a run replaces or removes when it writes files
// of the given names and a manifest: these, the files that the manifest there is
// lists, and what an interrupted run has left. Not all of them need exist.
func Replaces(path string, names []string) []string {
	names = append([]string{ManifestName}, names...)
	if old, err := ReadManifest(filepath.Join(path, ManifestName)); err == nil {
		for _, f := range old.Files {
			names = append(names, f.Name)
		}
	}
	return ReplacesFiles(path, names)
}

// ReplacesFiles is [Replaces] for a run that writes no manifest.
func ReplacesFiles(path string, names []string) []string {
	names = slices.Clone(names)
	entries, _ := os.ReadDir(path) // none when there is no directory yet
	for _, e := range entries {
		if isHidden(e) {
			names = append(names, e.Name())
		}
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

func isHidden(e fs.DirEntry) bool {
	return strings.HasPrefix(e.Name(), hidden) && e.Type().IsRegular()
}

func removeHidden(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isHidden(e) {
			if err := os.Remove(filepath.Join(path, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// A File is a file of the directory that is being written, front to back.
type File struct {
	*os.File
	name   string // that Commit gives it
	path   string // that it has
	digest hash.Hash
	size   int64
}

// longestName is the bytes that file systems allow in a name.
const longestName = 255

// ValidName reports whether a file of a directory may have that name: one that
// neither leads elsewhere nor is that of a file not committed.
func ValidName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "." && len(name) <= longestName &&
		!strings.HasPrefix(name, hidden) && !strings.Contains(name, "\x00")
}

// Create opens a new file that Commit will give the name. It may be called for
// one name only once.
func (d *Dir) Create(name string) (*File, error) {
	if there, err := os.Lstat(d.Path(name)); err == nil && there.IsDir() {
		return nil, directoryError(d.Path(name))
	}
	path := filepath.Join(d.path, hidden+d.run+"-"+name)
	if len(filepath.Base(path)) > longestName { // though the name alone may be short enough
		path = filepath.Join(d.path, fmt.Sprint(hidden, d.run, "-", len(d.files)))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	file := &File{File: f, name: name, path: path, digest: sha256.New()}
	d.files = append(d.files, file)
	return file, nil
}

// Path returns the path that the file will have when it is committed.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// WriteAt appends p, which has to begin where the file ends so far.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	if offset != f.size {
		return 0, fmt.Errorf("%s: write at byte %d of a file that ends at %d", f.name, offset, f.size)
	}
	return f.Write(p)
}

// Write appends p.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.digest.Write(p[:n])
	f.size += int64(n)
	return n, err
}

// Sum returns the length and the SHA-256, in hexadecimal, of what was written.
func (f *File) Sum() (int64, string) { return f.size, hex.EncodeToString(f.digest.Sum(nil)) }

// Commit syncs all files, gives them their names, and writes the manifest last.
// Files of an earlier result that the new one does not have are removed. After
// an error the directory has no manifest, or still the earlier result as a whole;
// Discard removes the rest.
//
// Several processes may write one directory, each its own files and all the same
// manifest. They prepare it and then create files, and together returns when all of
// them have called it as often; it may be nil where there is one.
func (d *Dir) Commit(m *Manifest, together func() error) error {
	if together == nil {
		together = func() error { return nil }
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	manifest, err := d.Create(ManifestName)
	if err != nil {
		return err
	}
	if _, err := manifest.Write(append(data, '\n')); err != nil {
		return err
	}
	if err := d.close(); err != nil {
		return err
	}
	if err := together(); err != nil {
		return err
	}
	if err := d.removeEarlier(); err != nil {
		return err
	}
	if err := together(); err != nil {
		return err
	}
	last := len(d.files) - 1 // the manifest
	if err := d.rename(d.files[:last]); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(d.path); err != nil {
		return err
	}
	if err := together(); err != nil {
		return err
	}
	return d.finish(d.files[last:])
}

// CommitFiles syncs all files and gives them their names, without a manifest.
// After an error, Discard removes those that have theirs already, too; what they
// have replaced is lost.
func (d *Dir) CommitFiles() error {
	if err := d.close(); err != nil {
		return err
	}
	return d.finish(d.files)
}

// close writes all files to the disk.
func (d *Dir) close() error {
	for _, f := range d.files {
		if err := f.Sync(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// rename gives files their names.
func (d *Dir) rename(files []*File) error {
	for _, f := range files {
		if err := os.Rename(f.path, d.Path(f.name)); err != nil {
			return err
		}
		f.path = d.Path(f.name)
	}
	return nil
}

// finish renames the last files, after which there is nothing to discard.
func (d *Dir) finish(files []*File) error {
	if err := d.rename(files); err != nil {
		return err
	}
	d.files, d.made = nil, nil
	return atomicfile.SyncDir(d.path)
}

// removeEarlier removes an earlier result: its manifest first, then its files.
func (d *Dir) removeEarlier() error {
	path := d.Path(ManifestName)
	old, err := ReadManifest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old == nil { // unreadable: its files are unknown
		return atomicfile.SyncDir(d.path)
	}
	for _, f := range old.Files {
		if err := os.Remove(d.Path(f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return atomicfile.SyncDir(d.path)
}

// Discard removes what was written and not committed, and the directories that
// Create made. It does nothing after a commit has succeeded.
func (d *Dir) Discard() {
	for _, f := range d.files {
		f.Close()
		os.Remove(f.path)
	}
	d.files = nil
	for _, path := range d.made {
		os.Remove(path) // fails, as it should, where something lies in it
	}
	d.made = nil
}
