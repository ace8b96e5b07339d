package group

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/internal/disk"
)

// An unopenable disk makes directories, and opens none of them.
type unopenable struct{ disk.Disk }

func (d unopenable) Open(path string) (disk.Dir, error) {
	if _, err := os.Lstat(path); err != nil {
		return nil, err
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
}

// TestMadeInVain checks that a directory which was made for a node, and then could not be opened,
// goes.
func TestMadeInVain(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "a")
	n := &store.Node{DirName: filepath.Join(parent, "b")}
	if err := n.Open(unopenable{disk.OS}, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	n.Close()
	if _, err := os.Lstat(parent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}
