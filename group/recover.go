package group

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"volley/files"
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/guard"
	"volley/group/internal/pass"
	"volley/group/internal/restore"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/survey"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/printable"
)

// RecoverOptions say how to recover.
type RecoverOptions struct {
	Revert protection.Edits // bring back, too, what users have changed or deleted since
	DryRun bool             // write nothing

	// Files, unless empty, are patterns, as those of ProtectOptions.Exclude, of what alone comes back: also what users have
	// deleted, and changed files where Revert has them. One that begins with the directory of a node, as it was given, is of
	// that node alone. Recover reads these files, and the blocks from which what they lack
	// comes back, and no others. With OutDir, what was protected of all of them comes there, at all nodes: that of node 3 in
	// OutDir/node.3, on the machine of the node's rank. Nothing else is written then.
	Files []string

	OutDir string `json:"To"`
}

// A RecoverReport says what Recover has done.
type RecoverReport struct {
	Step        *int64                 `json:"step,omitempty"` // of the snapshot
	Generation  int64                  `json:"generation"`
	Nodes       []NodeReport           `json:"nodes"` // as they were found
	Files       int                    `json:"files"` // brought back
	Blocks      int                    `json:"blocks"`
	Kept        []files.Name           `json:"kept,omitempty"`        // files that have changed and were left alone
	Deleted     []files.Name           `json:"deleted,omitempty"`     // what was deleted, and did not come back
	Replaced    []files.Name           `json:"replaced,omitempty"`    // where files lie now in whose place others were recovered
	Unrecovered []string               `json:"unrecovered,omitempty"` // files that could not be brought back, and why
	Reverts     []files.Name           `json:"reverts,omitempty"`     // by a dry run: changed and moved files that Revert.Changed brings back
	Matched     int                    `json:"matched,omitempty"`     // what Files fit: Nodes tells of nothing else
	Notes       []string               `json:"notes,omitempty"`
	Traffic     protection.PlanTraffic `json:"traffic"`
	Seconds     float64                `json:"seconds"`
}

// Incomplete returns an [*protection.IncompleteError] where something could not be brought back.
func (r *RecoverReport) Incomplete() error {
	var reasons []string
	for _, n := range r.Nodes {
		if n.Reason != "" {
			reasons = append(reasons, n.Dir+" cannot be read: "+n.Reason)
		}
	}
	switch len(r.Unrecovered) {
	case 0:
	case 1:
		reasons = append(reasons, r.Unrecovered[0])
	default:
		reasons = append(reasons, fmt.Sprintf("%s; and %d more", r.Unrecovered[0], len(r.Unrecovered)-1))
	}
	if reasons == nil {
		return nil
	}
	return &protection.IncompleteError{Reasons: reasons}
}

// Recover brings back what is lost or damaged at any node, as it was protected: files with their names, modes and
// times, parity and manifests. It writes nothing at a node that is whole, and no file before its digests are right.
// Files that were changed since stay as they are unless o.Revert has them, and count as lost where others need them.
// Where a file takes the place of another, that is kept in .volley/replaced.
//
// What cannot be brought back, as too much else is damaged or changed, or a node cannot be
// written to, is in the report, and the rest is recovered.
//
// With Latest, Recover takes the newest snapshot. It takes an older one only where all nodes find that the newer ones
// are lost for certain, or were never protected: these it renames, and they are then no snapshots any more. It returns a
// [*NotLostError], and renames nothing, where the newest may come back and does not, as where a disk is full. A snapshot
// may be of more nodes than there are roots, or fewer: the report has its nodes. Those that are missing come back in
// directories .spare-N of other roots.
//
// It returns a [*protection.TooManyError], at every rank, where more nodes are lost than the group tolerates, and a
// [*protection.RefusedError] for directories that are not those of a group; nothing has been written then. The error is
// a [*files.BusyError] where another run uses a node. After an error, or the end of a process at any moment, calling it
// again completes it.
func (g *Group) Recover(ctx context.Context, o RecoverOptions) (*RecoverReport, error) {
	writes := !o.DryRun && o.OutDir == ""
	if err := tree.Excludes(o.Files).Check("files"); err != nil {
		return nil, store.Inputf("%w", err)
	}
	if o.OutDir != "" && len(o.Files) == 0 {
		return nil, store.Inputf("nothing says which files are to be copied to %s: name some, or * for all", o.OutDir)
	}
	latest := g.options.Roots && g.options.Step == Latest
	work, renames := recoverGroup, latest && len(o.Files) == 0
	v := session.Verb{Name: "recover", Args: o, Access: store.Access{Writes: writes, Makes: writes}}
	if latest {
		v.Passed = map[int64]*session.LostError{}
	}
	if renames {
		work = recoverLatest
	}
	for {
		r, err := run(ctx, g, v, func(ctx context.Context, s *session.Session) (*RecoverReport, error) { return work(ctx, s, o) })
		lost := new(session.LostError)
		switch {
		case errors.As(err, &lost):
			v.Passed[lost.Step] = lost
		case err == nil && renames:
			return g.renameNewer(ctx, v, r)
		default:
			return r, err
		}
	}
}

// recoverLatest recovers the snapshot that was chosen.
func recoverLatest(ctx context.Context, s *session.Session, o RecoverOptions) (r *RecoverReport, err error) {
	if s.Manifest == nil && len(s.Key) == 0 && s.Complete(false) == nil && !slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Lost }) {
		return &RecoverReport{Step: s.Taken, Notes: []string{session.StepName(*s.Taken) + " is at every node, and not protected: nothing was compared"}}, nil
	}
	if r, err = recoverGroup(ctx, s, o); err == nil {
		if err = r.Incomplete(); err != nil {
			err = s.SharedError(ctx, err)
		}
	}
	switch {
	case err == nil:
		return r, nil
	case s.Agreed && !errors.As(err, new(*session.LostError)):
		err = &NotLostError{Step: *s.Taken, Err: err}
	}
	return nil, err
}

// A recovery is a run of recover, at the nodes here.
type recovery struct {
	s           *session.Session
	o           RecoverOptions
	r           *RecoverReport
	found       *survey.Survey
	targets     map[int]*restore.Target // that are written to
	unrecovered [][]string              // what does not come back, and why
	outs        []*store.Node           // that get what is copied out
	undo        func()                  // removes their directories, while empty
}

func recoverGroup(ctx context.Context, s *session.Session, o RecoverOptions) (_ *RecoverReport, err error) {
	start := time.Now()
	if s.Manifest == nil {
		return nil, s.SharedError(ctx, s.Unprotected())
	}
	r := &RecoverReport{Step: s.Taken, Generation: s.Generation, Traffic: erasure.NewTraffic(len(s.Nodes))}
	x := &recovery{s: s, o: o, r: r, targets: map[int]*restore.Target{}}
	defer func() {
		restore.Discard(x.targets)
		x.closeOuts(err)
	}()
	if s.Verb.Writes {
		survey.Sweep(s)
	}
	if len(o.Files) > 0 {
		err = x.takeFiles(ctx)
	} else {
		err = x.takeAll(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.Blocks = len(x.found.Rows)
	s.Log.DebugContext(ctx, "found what is missing", "blocks", r.Blocks, "repairs", len(x.found.Repairs))
	r.Notes = slices.Concat(r.Notes, s.Notes(), pass.NoteTorn(s, x.found.Conditions))
	x.giveUp()
	if err = x.makeTargets(ctx); err != nil {
		return nil, err
	}
	complete, err := x.restore(ctx)
	if err == nil && complete && len(o.Files) == 0 { // else an earlier generation may be of use yet
		var kept []string
		kept, err = s.Clean(ctx, s.Generation)
		r.Notes = append(r.Notes, kept...)
	}
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// takeAll finds out what nodes lack, and says how they are.
func (x *recovery) takeAll(ctx context.Context) (err error) {
	var rebuild *survey.Rebuild
	if survey.Rebuildable(x.s) && !x.o.DryRun {
		rebuild = &survey.Rebuild{Targets: x.targets, Room: x.checkRoom, Traffic: &x.r.Traffic}
	}
	if x.found, err = survey.Take(ctx, x.s, x.o.Revert, rebuild); err != nil {
		return err
	}
	for n, c := range x.found.Conditions {
		c.Chosen = c.Findings
		report := reportOf(x.s, n, c)
		report.Reason = c.Failing
		x.r.Nodes = append(x.r.Nodes, report)
	}
	return nil
}

// takeFiles is takeAll for some files: parity, records and manifests stay as they are.
func (x *recovery) takeFiles(ctx context.Context) error {
	x.o.Revert.Deleted = true
	files := &survey.Files{Patterns: x.o.Files, Export: x.exports()}
	matched, notes, err := survey.FilesOfAll(ctx, x.s, files)
	x.r.Notes = notes
	if err != nil {
		return err
	}
	if x.found, err = survey.TakeFiles(ctx, x.s, files, x.o.Revert); err != nil {
		return err
	}
	for n, c := range x.found.Conditions {
		x.r.Matched += matched[n]
		report := reportOf(x.s, n, &content.Condition{Lost: c.Lost, Failing: c.Failing, Unreachable: c.Unreachable, Manifest: true, Findings: c.Chosen})
		if matched[n] > 0 {
			report.Reason = c.Failing
		}
		x.r.Nodes = append(x.r.Nodes, report)
	}
	return nil
}

// exports reports whether files are copied out, whatever nodes hold.
func (x *recovery) exports() bool { return x.o.OutDir != "" }

// giveUp says what users have done, and takes from the conditions of nodes what cannot come back.
func (x *recovery) giveUp() {
	x.unrecovered = make([][]string, len(x.s.Nodes))
	for i, n := range x.s.Nodes {
		c := x.found.Conditions[n.Index]
		x.unrecovered[i] = survey.GiveUp(x.s, n, c, x.found.Beyond)
		if !x.exports() {
			x.unrecovered[i] = append(x.unrecovered[i], survey.HiddenNotes(n, c, c.Chosen)...)
		}
	}
	if x.exports() {
		return
	}
	for n, c := range x.found.Conditions {
		x.r.noteEdits(x.s.States[n].Dir, c.Chosen, x.o)
	}
}

// makeTargets makes targets of the nodes that are written to, unless rebuilding them has.
func (x *recovery) makeTargets(ctx context.Context) error {
	if x.exports() && !x.o.DryRun {
		return x.copyTargets(ctx)
	}
	filesOnly := len(x.o.Files) > 0
	for _, n := range x.s.Nodes {
		c := x.found.Conditions[n.Index]
		writable := n.Dir != nil && c.Failing == ""
		lacks := !filesOnly || len(c.Restore) > 0 || x.s.States[n.Index].Interrupted()
		if x.targets[n.Index] != nil || !writable || !lacks {
			continue
		}
		x.targets[n.Index] = survey.NewTarget(x.s, n, c)
		if filesOnly {
			x.targets[n.Index].RestoreEntriesOnly(n.Dir)
		}
	}
	return nil
}

// checkRoom returns an error where there is no room for what is to come back at targets, before it is sent or written.
func (x *recovery) checkRoom(ctx context.Context) error {
	lack := guard.Lack{Subject: "what comes back", Advice: "make room, or give an empty directory where there is more"}
	if x.o.Files == nil {
		lack.Option = protection.OptionFiles
	}
	return guard.CheckRoom(ctx, x.s, lack, func(n *store.Node) store.Writes { return x.targets[n.Index].Writes() })
}

// noteEdits adds to a report what users have done at a node.
func (r *RecoverReport) noteEdits(dir string, findings []protection.Finding, o RecoverOptions) {
	for _, f := range findings {
		path := files.Name(tree.JoinPath(dir, f.Path))
		switch {
		case f.Kind == Changed && !o.Revert.Changed:
			r.Kept = append(r.Kept, path)
		case f.Kind == Deleted && !o.Revert.Deleted:
			r.Deleted = append(r.Deleted, path)
		case o.DryRun && o.Revert.Changed && (f.Kind == Changed || f.Kind == Moved):
			r.Reverts = append(r.Reverts, path)
		}
	}
}

// restore checks that there is room, and brings back what the targets are to have. It reports whether all is back. A dry
// run only says what would not be.
func (x *recovery) restore(ctx context.Context) (complete bool, err error) {
	if x.o.DryRun {
		for i := range x.unrecovered {
			x.unrecovered[i] = printable.Texts(x.unrecovered[i])
		}
		lists, err := session.Exchange(ctx, x.s, x.unrecovered)
		x.r.Unrecovered = slices.Concat(lists...)
		return false, err
	}
	if err := x.checkRoom(ctx); err != nil {
		return false, err
	}
	if err := x.eachTarget(ctx, (*restore.Target).Prepare); err != nil {
		return false, err
	}
	if err := survey.RunRepairs(ctx, x.s, x.found.Repairs, x.targets, &x.r.Traffic); err != nil {
		return false, err
	}
	if err := x.eachTarget(ctx, func(target *restore.Target, _ context.Context) error { return target.Finish() }); err != nil {
		return false, err
	}
	if err := x.s.Steadied(ctx, x.found.Conditions); err != nil {
		return false, err
	}
	// Everything that is to be written is there, at all nodes that are not left out.
	outcomes, err := session.Collect(ctx, x.s, x.commit)
	if err != nil {
		return false, err
	}
	return x.take(outcomes), nil
}

// eachTarget calls f for all targets that are not left out.
func (x *recovery) eachTarget(ctx context.Context, f func(*restore.Target, context.Context) error) error {
	return x.s.EachSteady(ctx, func(ctx context.Context, _ int, n *store.Node) error {
		target := x.targets[n.Index]
		if target == nil {
			return nil
		}
		return target.Try(ctx, func() error { return f(target, ctx) })
	})
}

// An outcome is what has come back at a node.
type outcome struct {
	Recovered          protection.Recovered
	Sent               int64
	Replaced           []files.Name
	Unrecovered, Notes []string
	Complete           bool
	Tidied             bool // nothing is left there of interrupted runs but generations that are pending
}

// commit gives what comes back at a node its names.
func (x *recovery) commit(ctx context.Context, i int, n *store.Node) (outcome, error) {
	d, target := outcome{Sent: x.r.Traffic.Sent[i]}, x.targets[n.Index]
	if target == nil {
		d.Unrecovered, d.Complete = printable.Texts(x.unrecovered[i]), x.found.Conditions[n.Index].Failing == ""
		return d, nil
	}
	if err := target.Try(ctx, target.Commit); err != nil {
		return d, err
	}
	if target.Failed != nil {
		target.Unfinished = []string{fmt.Sprintf("%s: nothing more is recovered here: %v", n.DirName, target.Failed)}
	}
	d.Recovered, d.Replaced = target.Recovered, append(target.Replaced, n.Replaced...)
	d.Complete, d.Tidied = target.Unfinished == nil, target.Failed == nil
	d.Unrecovered = printable.Texts(slices.Concat(x.unrecovered[i], target.Blocked, target.Unfinished))
	d.Notes = printable.Texts(append(target.Notes, target.UnsetNotes()...))
	return d, nil
}

// take adds what has come back at all nodes to the report, and reports whether that is all.
func (x *recovery) take(outcomes []outcome) (complete bool) {
	r := x.r
	complete = true
	for n, d := range outcomes {
		r.Files += d.Recovered.Files
		if d.Recovered != (protection.Recovered{}) {
			r.Nodes[n].Recovered = &d.Recovered
		}
		r.Traffic.MostSent = max(r.Traffic.MostSent, d.Sent)
		r.Unrecovered = append(r.Unrecovered, d.Unrecovered...)
		r.Replaced = append(r.Replaced, d.Replaced...)
		r.Notes = append(r.Notes, d.Notes...)
		complete = complete && d.Complete
	}
	if x.s.Verb.Writes { // else the notes have what is left
		cleaned := complete && len(x.o.Files) == 0
		r.Notes = append(r.Notes, x.s.Leftovers(func(n int, name string) bool {
			return outcomes[n].Tidied && (cleaned || slices.Contains(x.s.States[n].Leftovers, name))
		})...)
	}
	return complete
}

// closeOuts gives the directories of what is copied out back, and removes them after an error, as far as they are empty.
func (x *recovery) closeOuts(err error) {
	for _, outNode := range x.outs {
		outNode.Close()
	}
	if err != nil && x.undo != nil {
		x.undo()
	}
}

// copyTargets makes targets below OutDir for what comes back of files. What an earlier run has written there stays.
func (x *recovery) copyTargets(ctx context.Context) error {
	return x.s.Steady(ctx, func(ctx context.Context) error {
		x.undo = disk.Unmake(x.s.Disk, x.o.OutDir)
		var sources []*store.Node
		for _, n := range x.s.Nodes {
			if len(x.found.Conditions[n.Index].Restore) == 0 {
				continue
			}
			dir, host := filepath.Join(x.o.OutDir, fmt.Sprint("node.", n.Index)), ""
			if prefix, ok := strings.CutSuffix(n.DirName, n.DirPath); ok && n.Absent == "" {
				host = prefix
			}
			sources, x.outs = append(sources, n), append(x.outs, &store.Node{Index: n.Index, DirPath: dir, DirName: host + dir})
		}
		err := x.s.Apart(x.outs...)
		for i, n := range sources {
			if err == nil {
				err = x.copyTarget(ctx, n, x.outs[i])
			}
		}
		return err
	})
}

// copyTarget makes the target in the directory that gets files of a node.
func (x *recovery) copyTarget(ctx context.Context, n, outNode *store.Node) error {
	c := x.found.Conditions[n.Index]
	if err := outNode.Open(x.s.Disk, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); err != nil {
		return err
	}
	if outNode.ReadOnly != "" {
		return fmt.Errorf("%s cannot be written to: %s", outNode.DirName, outNode.ReadOnly)
	}
	l, err := tree.Scan(outNode.Dir, false, tree.Rules{})
	if err != nil {
		return err
	}
	lacks := &content.Condition{Listing: l, Data: c.Data, Touched: c.Touched}
	lacks.Restore, err = survey.Lacking(ctx, x.s.Manifest, outNode, l, x.s.RecordOf[n.Index], c.Restore)
	x.targets[n.Index] = survey.NewCopy(x.s, n, outNode, lacks)
	return err
}
