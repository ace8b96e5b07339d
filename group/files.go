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
		return nil, s.Alike(ctx, s.Unprotected())
	}
	o.Revert.Deleted = true
	files := &survey.Files{Patterns: o.Files, Export: o.To != ""}
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
	findings, err := survey.FindingsOf(ctx, s, files, found.Conditions)
	if err != nil {
		return nil, err
	}
	r := &RecoverReport{Step: s.Taken, Generation: s.Generation, Traffic: erasure.NewTraffic(len(s.Nodes)), Blocks: len(found.Rows), Notes: s.Notes()}
	for n, c := range found.Conditions {
		r.Matched += matched[n]
		of := &content.Condition{Lost: c.Lost, Failing: c.Failing, Unreachable: c.Unreachable, Manifest: true, Findings: findings[n]}
		r.Nodes = append(r.Nodes, reportOf(s, n, of))
		if c.Failing != "" && matched[n] > 0 {
			r.Nodes[n].why = c.Failing
		}
		if !files.Export {
			r.tell(s.States[n].Dir, findings[n], o)
		}
	}
	r.Notes = append(r.Notes, pass.NoteTorn(s, found.Conditions)...)
	targets := map[int]*restore.Target{}
	defer restore.Discard(targets)
	left, comes := make([][]string, len(s.Nodes)), map[int]bool{}
	for i, n := range s.Nodes {
		c := found.Conditions[n.Index]
		comes[n.Index] = len(c.Restore) > 0
		left[i] = survey.GiveUp(s, n, c, found.Beyond)
		if !files.Export {
			left[i] = append(left[i], survey.HiddenNotes(n, c, findings[n.Index])...)
		}
	}
	switch {
	case o.DryRun:
		err = r.leave(ctx, s, left)
	case files.Export:
		err = copyOut(ctx, s, o, r, found, targets, comes, left)
	default:
		for _, n := range s.Nodes {
			if (comes[n.Index] || s.States[n.Index].Interrupted()) && n.Dir != nil && found.Conditions[n.Index].Failing == "" {
				targets[n.Index] = survey.NewTarget(s, n, found.Conditions[n.Index])
				targets[n.Index].RestoreEntriesOnly(n.Dir)
			}
		}
		if err = checkRoom(ctx, s, o, targets); err == nil {
			_, err = restoreAll(ctx, s, o, r, found, targets, left)
		}
	}
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// copyOut writes what was protected of files into the directories below another one that are for their nodes. What an
// earlier run has written there stays.
func copyOut(ctx context.Context, s *session.Session, o RecoverOptions, r *RecoverReport, found *survey.Survey, targets map[int]*restore.Target, comes map[int]bool, left [][]string) (err error) {
	undo := disk.Unmake(s.Disk, o.To)
	var outs []*store.Node
	defer func() {
		restore.Discard(targets)
		for _, out := range outs {
			out.Close()
		}
		if err != nil {
			undo()
		}
	}()
	for _, n := range s.Nodes {
		if comes[n.Index] {
			at, host := filepath.Join(o.To, fmt.Sprint("node.", n.Index)), ""
			if of, ok := strings.CutSuffix(n.Given, n.At); ok && n.Absent == "" {
				host = of
			}
			outs = append(outs, &store.Node{Index: n.Index, At: at, Given: host + at})
		}
	}
	if err := s.Steady(ctx, func(context.Context) error { return s.Apart(outs...) }); err != nil {
		return err
	}
	made := make([]*restore.Target, len(s.Nodes))
	notes, err := session.Collect(ctx, s, func(ctx context.Context, here int, n *store.Node) (string, error) {
		i := slices.IndexFunc(outs, func(out *store.Node) bool { return out.Index == n.Index })
		if i < 0 {
			return "", nil
		}
		out, x, c := outs[i], s.RecordOf[n.Index], found.Conditions[n.Index]
		if err := out.Open(s.Disk, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); err != nil {
			return "", err
		}
		if out.ReadOnly != "" {
			return "", fmt.Errorf("%s cannot be written to: %s", out.Given, out.ReadOnly)
		}
		l, err := tree.Scan(out.Dir, false, tree.Rules{})
		if err != nil {
			return "", err
		}
		lacks := &content.Condition{Listing: l, Data: c.Data, Touched: c.Touched}
		if lacks.Restore, err = survey.Lacking(ctx, s.Manifest, out, l, x, c.Restore); err != nil {
			return "", err
		}
		made[here] = survey.NewTargetAt(s, out, out.Load(s.Key, s.K), x, lacks)
		made[here].RestoreEntriesOnly(n.Dir)
		return fmt.Sprintf("the files of %s go to %s", s.Name(n.Index), out.Given), nil
	})
	if err != nil {
		return err
	}
	for i, n := range s.Nodes {
		if made[i] != nil {
			targets[n.Index] = made[i]
		}
	}
	r.Notes = append(r.Notes, slices.DeleteFunc(notes, func(text string) bool { return text == "" })...)
	if err = checkRoom(ctx, s, o, targets); err != nil {
		return err
	}
	_, err = restoreAll(ctx, s, o, r, found, targets, left)
	return err
}
