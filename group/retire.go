package group

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"volley/group/internal/session"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/printable"
)

// surplus decides which snapshots a run removes that has put one in force at all nodes: those that are older than so many
// of the newest ones that can be recovered. It says why others stay that are as old.
func surplus(list []Snapshot, step int64, retain int) (removable []int64, notes []string) {
	kept := []int64{step}
	for _, x := range list {
		if x.State == InForce || x.State == Recoverable {
			kept = append(kept, x.Step)
		}
	}
	slices.SortFunc(kept, session.NewestFirst)
	if len(kept) < retain {
		return nil, nil
	}
	for _, x := range list {
		switch {
		case x.Step >= kept[retain-1]:
		case x.State == Unclear || x.State == Busy:
			notes = append(notes, fmt.Sprintf("%s stays: %s", session.StepName(x.Step), x.Reason))
		default:
			removable = append(removable, x.Step)
		}
	}
	return removable, notes
}

// retire removes snapshots older than the newest protected ones that are retained. This one is in force everywhere.
// It returns which have gone, and notes.
func retire(ctx context.Context, s *session.Session, retain int) (removed []int64, notes []string, err error) {
	found, err := lookAround(ctx, s, Latest)
	if err != nil {
		return nil, nil, err
	}
	defer found.Close()
	removable, notes := surplus(found.List, *s.Taken, retain)
	removed, err = found.renameSnapshots(ctx, s, removable, *s.Taken, &notes)
	return removed, notes, err
}

// renameSnapshots renames snapshots, whose locks this run has, and what is stale of others. It returns which are gone
// everywhere. It removes what was renamed, by this run or an earlier one, or never completed, where that is no newer than a
// step, and spares that have nothing.
func (f *surroundings) renameSnapshots(ctx context.Context, s *session.Session, steps []int64, newest int64, notes *[]string) ([]int64, error) {
	if !s.Verb.Writes {
		return nil, nil
	}
	type remaining struct {
		Steps []int64
		Notes []string
	}
	lists, err := eachRoot(ctx, s, f, func(_ context.Context, root *rootState) (x remaining, _ error) {
		dir, err := s.Disk.Open(root.path)
		if root.Failing != "" || err != nil {
			return x, nil // nothing is there that could go
		}
		defer dir.Close()
		for _, step := range slices.Concat(steps, f.staleIn(root)) {
			snapshot := root.opened[step]
			if snapshot == nil {
				continue
			}
			if err := dir.Rename(session.StepName(step), session.StepName(step)+".aside-"+s.Run); err != nil {
				x.Steps, x.Notes = append(x.Steps, step), append(x.Notes, fmt.Sprintf("%s stays: %v", snapshot.DirName, err))
			}
		}
		dir.SyncDir(".") // a rename that a power cut undoes is made again by the next run
		entries, _ := dir.ReadDir(".")
		for _, e := range entries {
			if step, ok := session.StepOf(e.Name()); ok && step <= newest && e.Name() != session.StepName(step) {
				if err := disk.RemoveAll(dir, e.Name()); err != nil {
					x.Notes = append(x.Notes, fmt.Sprintf("%s is not removed: %v", tree.JoinPath(root.Dir, tree.Name(e.Name())), err))
				}
			}
		}
		if root.Spare != "" {
			if above, err := s.Disk.Open(filepath.Dir(root.path)); err == nil {
				above.Remove(root.Spare) // fails, as it should, where something lies in it
				above.Close()
			}
		}
		x.Notes = printable.Texts(x.Notes)
		return x, nil
	})
	for _, x := range lists {
		*notes = append(*notes, x.Notes...)
		steps = slices.DeleteFunc(steps, func(step int64) bool { return slices.Contains(x.Steps, step) })
	}
	return steps, err
}

// staleIn returns the snapshots of which a root has something else.
func (f *surroundings) staleIn(root *rootState) (steps []int64) {
	for _, x := range f.List {
		if slices.Contains(x.stale, root.Seat) {
			steps = append(steps, x.Step)
		}
	}
	return steps
}
