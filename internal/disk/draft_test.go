package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"volley/internal/disk"
)

// TestWrite checks that what fails leaves everything as it was, and nothing beside it. See [TestSweep].
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, failed := filepath.Join(dir, "file"), errors.New("failed")
	if err := errors.Join(disk.WriteFile(path, []byte("text"), 0o666), os.Mkdir(filepath.Join(dir, "folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := disk.WriteFile(filepath.Join(dir, "folder"), []byte("x"), 0o666); err == nil {
		t.Error("a directory was replaced")
	}
	var open *fs.PathError
	if err := disk.WriteFile(filepath.Join(dir, "none", "file"), nil, 0o666); !errors.As(err, &open) || open.Op != "open" {
		t.Errorf("no directory: %v: want a PathError of Op open", err)
	}
	if err := disk.WriteStream(disk.OS, path, 0o666, false, func(w io.Writer) error { return failed }); err != failed {
		t.Errorf("a write that failed: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if got, err2 := os.ReadFile(path); err != nil || err2 != nil || string(got) != "text" || len(entries) != 2 {
		t.Errorf("%q, %v, and %v: want file and folder", got, err2, entries)
	}
}
