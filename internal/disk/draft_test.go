package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"volley/internal/disk"
)

// TestWrite checks that what fails leaves everything as it was, and nothing beside it. See [TestSweep].
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write := func(path, text string) error { return disk.WriteMode(disk.OS, path, []byte(text), 0o600) }
	if err := errors.Join(write(path, "text"), os.Mkdir(filepath.Join(dir, "folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if write(filepath.Join(dir, "folder"), "x") == nil || write(filepath.Join(dir, "none", "file"), "") == nil {
		t.Error("a directory was replaced, or made")
	}
	entries, err := os.ReadDir(dir)
	if got, err2 := os.ReadFile(path); err != nil || err2 != nil || string(got) != "text" || len(entries) != 2 {
		t.Errorf("%q, %v, and %v: want file and folder", got, err2, entries)
	}
}
