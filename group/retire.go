package group

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
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
	lacking, err := found.glance(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	removable, notes := surplus(found.List, *s.Taken, retain)
	notes = append(lacking, notes...)
	removed, err = found.renameSnapshots(ctx, s, removable, *s.Taken, &notes)
	return removed, notes, err
}

// renameSnapshots renames snapshots, whose locks this run has, and returns which are gone everywhere. It removes what was
// renamed, by this run or an earlier one, or never completed, and is no newer than a step, and spares that have nothing.
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
		for _, step := range steps {
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

// glance looks for the files of the snapshots that count by their records: by name, length and time. Where more nodes lack
// files than may be lost, a snapshot is incomplete, which the notes say.
func (f *surroundings) glance(ctx context.Context, s *session.Session) (notes []string, err error) {
	counts := func(x *Snapshot) bool { return x.State == InForce || x.State == Recoverable }
	lists, err := eachRoot(ctx, s, f, func(ctx context.Context, root *rootState) (steps []int64, _ error) {
		for _, x := range f.List {
			snapshot := root.opened[x.Step]
			if snapshot == nil || !counts(&x) {
				continue
			}
			snapshot.Load(s.Key, s.K)
			complete, err := hasFiles(ctx, snapshot, x.root)
			snapshot.Held, snapshot.Unread = nil, nil
			if err != nil {
				return nil, err
			}
			if complete {
				steps = append(steps, x.Step)
			}
		}
		return steps, nil
	})
	if err != nil {
		return nil, err
	}
	for i, steps := range lists {
		f.Roots[i].complete = steps
	}
	for i := range f.List {
		x := &f.List[i]
		if !counts(x) {
			continue
		}
		var lacking []string
		for _, root := range x.seats {
			if !slices.Contains(root.complete, x.Step) {
				lacking = append(lacking, root.Dir)
			}
		}
		if len(lacking) > x.tolerate {
			x.State, x.Reason = Incomplete, fmt.Sprintf("files that were protected are missing or others at %d nodes, and %d may be lost: %s", len(lacking), x.tolerate, strings.Join(lacking, ", "))
			notes = append(notes, fmt.Sprintf("%s does not count: %s", session.StepName(x.Step), x.Reason))
		}
	}
	return notes, nil
}

// hasFiles reports whether a node has the files of the generation whose manifest has the root, whatever their names are by
// now. The error is that of a context that has ended.
func hasFiles(ctx context.Context, n *store.Node, root string) (bool, error) {
	for _, l := range n.Held {
		if l.Node < 0 || l.Held(nil).Root != root {
			continue
		}
		record, err := n.Read(l, l.Manifest.RecordFilesAt(l.Node)[0])
		if err != nil {
			return false, nil
		}
		x, err := l.Manifest.DecodeRecord(record)
		if err != nil {
			return false, nil
		}
		list, err := tree.Scan(n.Dir, false, l.Manifest.Rules())
		if err != nil {
			return false, nil
		}
		if err := content.FindSources(ctx, l.Manifest, n.Dir, list, x, content.NoFiles); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(x.Entries, func(e *tree.Entry) bool {
			current := list.Find(e.ReadAs())
			return e.Type == tree.TypeFile && (current == nil || current.FileOf() == "" || current.Size != e.Size || !e.Torn && !current.SameTime(e))
		}), nil
	}
	return false, nil
}
