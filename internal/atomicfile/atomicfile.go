// Package atomicfile writes a file whole or not at all.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"volley/internal/disk"
)

// Hidden begins the names of files that are not there yet.
const Hidden = ".volley-"

// Write writes data to path, in place of an earlier file, under another name in the same directory at first: the file
// is there whole, or as it was before, and its name lasts. The error is an *fs.PathError of Op "open" where there can
// be no file at all, and nothing was written.
func Write(path string, data []byte) error { return Stream(path, writing(data)) }

// WriteMode is [Write] for a file that gets that mode whatever the umask takes.
func WriteMode(path string, data []byte, mode fs.FileMode) error {
	return stream(disk.OS, path, writing(data), mode.Perm(), true)
}

func writing(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// Stream is [Write] of what write writes. Where write fails, the error is its own.
func Stream(path string, write func(io.Writer) error) error {
	return stream(disk.OS, path, write, 0o666, false)
}

func stream(on disk.Disk, path string, write func(io.Writer) error, mode fs.FileMode, exactly bool) error {
	dir, err := on.Open(filepath.Dir(path))
	if err != nil {
		if at := new(fs.PathError); errors.As(err, &at) {
			err = at.Err
		}
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer dir.Close()
	return streamIn(dir, filepath.Base(path), write, mode, exactly)
}

// WriteIn is [Write] for a file of a directory. Its mode is perm, less the umask.
func WriteIn(dir disk.Dir, name string, data []byte, perm fs.FileMode) error {
	return streamIn(dir, name, writing(data), perm, false)
}

func streamIn(dir disk.Dir, name string, write func(io.Writer) error, mode fs.FileMode, exactly bool) (err error) {
	draft := path.Join(path.Dir(name), Hidden+rand.Text()[:8])
	f, err := dir.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			dir.Remove(draft) // it has gone where only the directory could not be synced
		}
	}()
	if exactly {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = dir.Rename(draft, name)
	}
	if err == nil {
		err = dir.SyncDir(path.Dir(name))
	}
	return err
}
