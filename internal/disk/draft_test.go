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

// TestWrite checks that a file is written and replaced, and that what fails leaves
// everything as it was, and nothing beside it.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, want := range []string{"first, the longer one", "second"} {
		if err := disk.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%q: want %q", got, want)
		}
	}

	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := disk.WriteFile(folder, []byte("x"), 0o666); err == nil {
		t.Error("a directory was replaced")
	}
	var open *fs.PathError
	if err := disk.WriteFile(filepath.Join(dir, "none", "file"), nil, 0o666); !errors.As(err, &open) || open.Op != "open" {
		t.Errorf("no directory: %v: want a PathError of Op open", err)
	}
	failed := errors.New("failed")
	if err := disk.WriteStream(disk.OS, path, 0o666, false, func(w io.Writer) error {
		io.WriteString(w, "half")
		return failed
	}); err != failed {
		t.Errorf("a write that failed: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "second" {
		t.Errorf("%q, %v after a write that failed", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("%v: want file and folder", entries)
	}
}
