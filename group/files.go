package group

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/pass"
	"volley/group/internal/restore"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/survey"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// recoverFiles is recoverGroup for some files: parity, records and manifests stay as they are.
func recoverFiles(ctx context.Context, s *session.Session, o RecoverOptions) (_ *RecoverReport, err error) {
	start := time.Now()
	if s.Manifest == nil {
		return nil, s.SharedError(ctx, s.Unprotected())
	}
	o.Revert.Deleted = true
	files := &survey.Files{Patterns: o.Files, Export: o.OutDir != ""}
	if !o.DryRun && !files.Export {
		survey.Sweep(s)
	}
	matched, err := survey.FilesOfAll(ctx, s, files)
	if err != nil {
		return nil, err
	}
	found, err := survey.TakeFiles(ctx, s, files, o.Revert)
	if err != nil {
		return nil, err
	}
	r := &RecoverReport{Step: s.Taken, Generation: s.Generation, Traffic: erasure.NewTraffic(len(s.Nodes)), Blocks: len(found.Rows), Notes: s.Notes()}
	for n, c := range found.Conditions {
		r.Matched += matched[n]
		condition := &content.Condition{Lost: c.Lost, Failing: c.Failing, Unreachable: c.Unreachable, Manifest: true, Findings: c.Chosen}
		r.Nodes = append(r.Nodes, reportOf(s, n, condition))
		if c.Failing != "" && matched[n] > 0 {
			r.Nodes[n].failing = c.Failing
		}
		if !files.Export {
			r.noteEdits(s.States[n].Dir, c.Chosen, o)
		}
	}
	r.Notes = append(r.Notes, pass.NoteTorn(s, found.Conditions)...)
	targets := map[int]*restore.Target{}
	defer restore.Discard(targets)
	unrecovered, comes := make([][]string, len(s.Nodes)), map[int]bool{}
	for i, n := range s.Nodes {
		c := found.Conditions[n.Index]
		comes[n.Index] = len(c.Restore) > 0
		unrecovered[i] = survey.GiveUp(s, n, c, found.Beyond)
		if !files.Export {
			unrecovered[i] = append(unrecovered[i], survey.HiddenNotes(n, c, c.Chosen)...)
		}
	}
	if files.Export && !o.DryRun {
		err = copyOut(ctx, s, o, r, found, targets, comes, unrecovered)
	} else {
		for _, n := range s.Nodes {
			if (comes[n.Index] || s.States[n.Index].Interrupted()) && n.Dir != nil && found.Conditions[n.Index].Failing == "" {
				targets[n.Index] = survey.NewTarget(s, n, found.Conditions[n.Index])
				targets[n.Index].RestoreEntriesOnly(n.Dir)
			}
		}
		_, err = restoreAll(ctx, s, o, r, found, targets, unrecovered)
	}
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// copyOut writes what was protected of files into the directories below another one that are for their nodes. What an
// earlier run has written there stays.
func copyOut(ctx context.Context, s *session.Session, o RecoverOptions, r *RecoverReport, found *survey.Survey, targets map[int]*restore.Target, comes map[int]bool, unrecovered [][]string) (err error) {
	undo := disk.Unmake(s.Disk, o.OutDir)
	var outs []*store.Node
	defer func() {
		restore.Discard(targets)
		for _, outNode := range outs {
			outNode.Close()
		}
		if err != nil {
			undo()
		}
	}()
	for _, n := range s.Nodes {
		if comes[n.Index] {
			dir, host := filepath.Join(o.OutDir, fmt.Sprint("node.", n.Index)), ""
			if prefix, ok := strings.CutSuffix(n.DirName, n.DirPath); ok && n.Absent == "" {
				host = prefix
			}
			outs = append(outs, &store.Node{Index: n.Index, DirPath: dir, DirName: host + dir})
		}
	}
	if err := s.Steady(ctx, func(context.Context) error { return s.Apart(outs...) }); err != nil {
		return err
	}
	created := make([]*restore.Target, len(s.Nodes))
	notes, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (string, error) {
		index := slices.IndexFunc(outs, func(outNode *store.Node) bool { return outNode.Index == n.Index })
		if index < 0 {
			return "", nil
		}
		outNode, x, c := outs[index], s.RecordOf[n.Index], found.Conditions[n.Index]
		if err := outNode.Open(s.Disk, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); err != nil {
			return "", err
		}
		if outNode.ReadOnly != "" {
			return "", fmt.Errorf("%s cannot be written to: %s", outNode.DirName, outNode.ReadOnly)
		}
		l, err := tree.Scan(outNode.Dir, false, tree.Rules{})
		if err != nil {
			return "", err
		}
		lacks := &content.Condition{Listing: l, Data: c.Data, Touched: c.Touched}
		if lacks.Restore, err = survey.Lacking(ctx, s.Manifest, outNode, l, x, c.Restore); err != nil {
			return "", err
		}
		created[i] = survey.NewTargetAt(s, outNode, outNode.Load(s.Key, s.K), x, lacks)
		created[i].RestoreEntriesOnly(n.Dir)
		return fmt.Sprintf("the files of %s go to %s", s.Name(n.Index), outNode.DirName), nil
	})
	if err != nil {
		return err
	}
	for i, n := range s.Nodes {
		if created[i] != nil {
			targets[n.Index] = created[i]
		}
	}
	r.Notes = append(r.Notes, slices.DeleteFunc(notes, func(text string) bool { return text == "" })...)
	_, err = restoreAll(ctx, s, o, r, found, targets, unrecovered)
	return err
}
