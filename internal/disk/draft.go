package disk

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Hidden begins the names of files that are not there yet.
const Hidden = ".volley-"

// LongestName is the bytes that file systems allow in a name.
const LongestName = 255

// A Draft is a new file that has a hidden name, in the directory where it is to have its own.
type Draft struct {
	File
	dir            Dir
	hidden, target string
}

// CreateDraft makes a draft of a file of a directory. Its hidden name is no other run's and, unless that is too long, ends
// in its own, so that errors tell which file it is. It follows no link.
func CreateDraft(dir Dir, name string, mode fs.FileMode) (*Draft, error) {
	return create(dir, name, "-"+path.Base(name), mode)
}

func create(dir Dir, name, tells string, mode fs.FileMode) (*Draft, error) {
	hidden := Hidden + rand.Text()[:8]
	if len(hidden+tells) <= LongestName {
		hidden += tells
	}
	d := &Draft{dir: dir, hidden: path.Join(path.Dir(name), hidden), target: name}
	var err error
	d.File, err = dir.OpenFile(d.hidden, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Finish makes what was written last, and closes the file.
func (d *Draft) Finish() error {
	err := d.Sync()
	if closing := d.Close(); err == nil {
		err = closing
	}
	return err
}

// Rename gives the file its own name, in the place of an earlier file. The name lasts once the directory is synced.
func (d *Draft) Rename() error { return d.dir.Rename(d.hidden, d.target) }

// Discard closes the file, and removes it if it has not got its name.
func (d *Draft) Discard() {
	d.Close()
	d.dir.Remove(d.hidden)
}

// WriteMode writes data to path, in place of an earlier file, under another name in the same directory at first: the file
// is there whole, or as it was before, and its name lasts. It gets that mode, whatever the umask takes.
func WriteMode(d Disk, path string, data []byte, mode fs.FileMode) error {
	dir, err := d.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return writeIn(dir, filepath.Base(path), data, mode.Perm(), true)
}

// WriteIn is [WriteMode] for a file of a directory, whose mode is perm, less the umask.
func WriteIn(dir Dir, name string, data []byte, perm fs.FileMode) error {
	return writeIn(dir, name, data, perm, false)
}

func writeIn(dir Dir, name string, data []byte, mode fs.FileMode, exactly bool) error {
	d, err := create(dir, name, "", mode)
	if err != nil {
		return err
	}
	if exactly {
		err = d.Chmod(mode)
	}
	if err == nil {
		_, err = d.Write(data)
	}
	if err == nil {
		err = d.Finish()
	}
	if err == nil {
		err = d.Rename()
	}
	if err != nil {
		d.Discard()
		return err
	}
	return dir.SyncDir(path.Dir(name))
}
