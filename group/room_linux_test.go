package group_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/group"
	"volley/group/protection"
	"volley/internal/disk"
)

// TestRoom protects nodes of which one has a file of 8 TiB, with a byte in as many cells as parity has no room for: before
// anything is read, protect says so, and leaves no trace. A hole as long as the disk has room needs none.
func TestRoom(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 4, 1, 10_000, 5)
	f, err := os.Create(filepath.Join(dirs[2], "hole"))
	must(t, err)
	defer f.Close()
	if err := f.Truncate(8 << 40); err != nil {
		t.Skip(err)
	}
	const block = 64 << 20
	free, _, err := disk.Room(dirs[2])
	must(t, err)
	for i := range free/block + 1 {
		_, err := f.WriteAt([]byte{1}, i*block)
		must(t, err)
	}
	g, err := group.Open(dirs, protection.Settings{})
	must(t, err)
	defer g.Close()
	_, err = g.Protect(t.Context(), group.ProtectOptions{Tolerate: 1})
	if !group.IsInputError(err) || !strings.Contains(err.Error(), "has room for ") || !strings.Contains(err.Error(), "takes ") {
		t.Errorf("%v", err)
	}
	for _, dir := range dirs {
		if list, _ := filepath.Glob(filepath.Join(dir, ".volley", "*.1")); list != nil {
			t.Errorf("%v", list)
		}
	}
	must(t, f.Truncate(0))
	must(t, f.Truncate(max(free, block)))
	_, err = g.Protect(t.Context(), group.ProtectOptions{Tolerate: 1})
	must(t, err)
}
