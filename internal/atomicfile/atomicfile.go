// Package atomicfile writes a file whole or not at all.
package atomicfile

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"volley/internal/disk"
)

// Hidden begins the names of files that are not there yet.
const Hidden = ".volley-"

// Write writes data to a file, in place of an earlier file, under another name in the same
// directory at first: the file is there whole, or as it was before. The error is an
// *fs.PathError of Op "open" where there can be no file at all, and nothing was written.
func Write(file string, data []byte) (err error) {
	name := filepath.Join(filepath.Dir(file), Hidden+rand.Text()[:8])
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(name)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(name, file)
}

// WriteIn is [Write] of a file below an open directory, with that mode; its name is
// lasting, too, when it returns.
func WriteIn(d disk.Dir, name string, data []byte, perm fs.FileMode) (err error) {
	hidden := path.Join(path.Dir(name), Hidden+rand.Text()[:8])
	f, err := d.OpenFile(hidden, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.Remove(hidden)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = d.Rename(hidden, name)
	}
	if err != nil {
		return err
	}
	return d.SyncDir(path.Dir(name))
}
