package group

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"volley/group/internal/session"
	"volley/internal/disk"
)

func draftName(step int64) string { return session.StepName(step) + ".draft" }

// DraftSnapshot makes a directory for the files of a snapshot in a root, empty, and returns its path. It does not count as a
// snapshot until [CompleteSnapshot] gives it its name.
func DraftSnapshot(root string, step int64) (string, error) {
	if root == "" || step < 0 {
		return "", Inputf("a draft of step %d in %q: want a root, and a step of 0 or more", step, root)
	}
	if _, err := disk.Make(disk.OS, root, 0o777); err != nil {
		return "", err
	}
	dir, err := disk.OS.Open(root)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	name := draftName(step)
	if err := disk.RemoveAll(dir, name); err != nil {
		return "", err
	}
	return filepath.Join(root, name), dir.Mkdir(name, 0o777)
}

// CompleteSnapshot gives the draft of a snapshot its name, lastingly. It does nothing where there is no draft.
func CompleteSnapshot(root string, step int64) error {
	dir, err := disk.OS.Open(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer dir.Close()
	draft, name := draftName(step), session.StepName(step)
	if _, err := dir.Lstat(draft); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := dir.Lstat(name); err == nil {
		return Inputf("%s is there already, and %s was written for it: move one of them away", filepath.Join(root, name), filepath.Join(root, draft))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := dir.Rename(draft, name); err != nil {
		return fmt.Errorf("%s cannot get its name: %w", filepath.Join(root, draft), err)
	}
	return dir.SyncDir(".")
}

// SnapshotDir returns where a snapshot lies in a root, or its draft, if there is one.
func SnapshotDir(root string, step int64) string {
	if dir, err := disk.OS.Open(filepath.Join(root, draftName(step))); err == nil {
		dir.Close()
		return filepath.Join(root, draftName(step))
	}
	return filepath.Join(root, session.StepName(step))
}
