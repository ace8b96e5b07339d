// Package atomicfile writes a file whole or not at all.
package atomicfile

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// Hidden begins the names of files that are not there yet.
const Hidden = ".volley-"

// Write writes data to path, in place of an earlier file, under another name in the same
// directory at first: the file is there whole, or as it was before. The error is an
// *fs.PathError of Op "open" where there can be no file at all, and nothing was written.
func Write(path string, data []byte) (err error) {
	name := filepath.Join(filepath.Dir(path), Hidden+rand.Text()[:8])
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
	return os.Rename(name, path)
}
