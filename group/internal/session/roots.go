package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Latest is the newest snapshot: see Step of the settings.
const Latest int64 = -1

func StepName(step int64) string { return fmt.Sprint("step-", step) }

// StepOf returns the snapshot of which a directory is, or was until it was renamed.
func StepOf(name string) (step int64, ok bool) {
	parts := stepNames.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	step, err := strconv.ParseInt(parts[1], 10, 64)
	return step, err == nil
}

var stepNames = regexp.MustCompile(`^step-(0|[1-9][0-9]*)(?:\.aside-.*)?$`)

func NewestFirst(a, b int64) int { return cmp.Compare(b, a) }

// StepsIn returns the snapshots in a root, the newest first. A root that is missing has none.
func StepsIn(d disk.Disk, root string) (steps []int64, err error) {
	dir, err := d.Open(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, store.Inputf("%s is not a directory: name the root of a node's snapshots", root)
	case err != nil:
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(".")
	for _, e := range entries {
		if step, ok := StepOf(e.Name()); ok && e.Name() == StepName(step) && e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.SortFunc(steps, NewestFirst)
	return steps, err
}

func IdentifyRoot(d disk.Disk, root string) protection.Identity {
	steps, err := StepsIn(d, root)
	for _, step := range steps {
		if id := store.Identify(d, filepath.Join(root, StepName(step))); id.Node >= 0 {
			id.Group, id.Name, id.Step = "", tree.WholePath(root), step
			return id
		}
	}
	return protection.Identity{Node: -1, Name: tree.WholePath(root), Empty: err == nil && steps == nil}
}
