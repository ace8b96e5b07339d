package group

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/group/internal/content"
	"volley/group/internal/tree"
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
		entry tree.Entry
		want  string
		there string
	}{
		{tree.Entry{Path: "short", Type: tree.TypeFile, Size: 5, Offset: 2}, "", "\x00\x00abc\x00\x00\x00"},
		{tree.Entry{Path: "gone", Type: tree.TypeFile, Size: 5, Offset: 2}, "no such file", "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{tree.Entry{Path: ".", Type: tree.TypeFile, Size: 5, Offset: 2}, "no regular file", "\x00\x00\x00\x00\x00\x00\x00\x00"},
	} {
		_, err := content.NewData(d, []*tree.Entry{&c.entry}, false).ReadAt(make([]byte, 8), 0)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: want %q", c.entry.Path, err, c.want)
		}
		text := make([]byte, 8)
		if n, err := content.NewData(d, []*tree.Entry{&c.entry}, true).ReadAt(text, 0); n != 8 || err != nil || string(text) != c.there {
			t.Errorf("%s: %d, %v, %q: want %q", c.entry.Path, n, err, text, c.there)
		}
	}
}
