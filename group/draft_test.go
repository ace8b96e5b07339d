package group_test

import (
	"os"
	"path/filepath"
	"testing"

	"volley/group"
)

// TestDraft gives a draft its name once it is complete, and refuses one of a snapshot that is there.
func TestDraft(t *testing.T) {
	root := filepath.Join(t.TempDir(), "deep", "root")
	if err := group.CompleteSnapshot(root, 7); err != nil {
		t.Errorf("without a root: %v", err)
	}
	for _, left := range []string{"left over", ""} {
		dir, err := group.DraftSnapshot(root, 7)
		if err != nil || filepath.Dir(dir) != root {
			t.Fatal(dir, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("a draft that is not empty: %v, %v", list, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "state"+left), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // then there is no draft
		if err := group.CompleteSnapshot(root, 7); err != nil {
			t.Error(err)
		}
	}
	if list, err := filepath.Glob(root + "/*/*"); err != nil || len(list) != 1 || list[0] != filepath.Join(root, "step-7", "state") {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := group.DraftSnapshot(root, 7); err != nil {
		t.Fatal(err)
	}
	if err := group.CompleteSnapshot(root, 7); !group.IsInputError(err) {
		t.Errorf("a snapshot that is there: %v", err)
	}
}
