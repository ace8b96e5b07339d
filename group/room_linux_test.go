package group_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/group"
	"volley/group/protection"
)

// TestRoom protects nodes of which one has a hole of 8 TiB: before anything is read, protect says that its parity has no
// room, and leaves no trace.
func TestRoom(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 4, 1, 10_000, 5)
	must(t, os.WriteFile(filepath.Join(dirs[2], "hole"), nil, 0o600))
	if err := os.Truncate(filepath.Join(dirs[2], "hole"), 8<<40); err != nil {
		t.Skip(err)
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
}
