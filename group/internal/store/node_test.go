package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"volley/internal/disk"
)

// FuzzUnsealKeyed checks that what is taken is what was sealed, with one HMAC or none, and that
// nothing is taken for what was made with a key and was not.
func FuzzUnsealKeyed(f *testing.F) {
	text := []byte(`{"a":1}`)
	f.Add(disk.Seal(text))
	f.Add(SealKeyed(text, MacOf([]byte("a key for tests, no more"), OfManifest, text)))
	f.Add(SealKeyed(text, MacOf([]byte("a key for tests, no more"), OfRun, text)))
	f.Add([]byte("{}\n{\"hmac_sha256\":\"\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, mac, err := UnsealKeyed(data)
		if err == nil && !bytes.Equal(data, disk.Seal(text)) && !bytes.Equal(data, SealKeyed(text, mac)) {
			t.Errorf("%q is %q, %q", data, text, mac)
		}
		if made := MadeWith([]byte("a key for tests, no more"), data); made != (err == nil && mac == MacOf([]byte("a key for tests, no more"), OfManifest, text)) {
			t.Errorf("%q: made with the key: %v", data, made)
		}
	})
}

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
	n := &Node{DirName: filepath.Join(parent, "b")}
	if err := n.Open(unopenable{disk.OS}, Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	n.Close()
	if _, err := os.Lstat(parent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}
