package group

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/disk"
)

// TestDataErrors checks that what cannot be read is an error where files are protected, and
// as zeros where they are compared.
func TestDataErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "short"), []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := disk.OS.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		entry Entry
		want  string
		there string
	}{
		{Entry{Path: "short", Type: typeFile, Size: 5, Offset: 2}, "has become shorter than 5 bytes", "\x00\x00abc\x00\x00\x00"},
		{Entry{Path: "gone", Type: typeFile, Size: 5, Offset: 2}, "no such file", "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{Entry{Path: ".", Type: typeFile, Size: 5, Offset: 2}, "no regular file", "\x00\x00\x00\x00\x00\x00\x00\x00"},
	} {
		_, err := newData(d, []*Entry{&c.entry}, false).ReadAt(make([]byte, 8), 0)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: want %q", c.entry.Path, err, c.want)
		}
		content := make([]byte, 8)
		if n, err := newData(d, []*Entry{&c.entry}, true).ReadAt(content, 0); n != 8 || err != nil || string(content) != c.there {
			t.Errorf("%s: %d, %v, %q: want %q", c.entry.Path, n, err, content, c.there)
		}
	}
}
