package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"volley/files"
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
	// deleted, and changed files where Revert has them. Recover reads these files, and the blocks from which what they lack
	// comes back, and no others. With OutDir, what was protected of all of them comes there, at all nodes: that of node 3 in
	// OutDir/node.3, on the machine of the node's rank.
	Files []string

	// OutDir, unless empty, is a directory in which the data of lost nodes comes back, that of node 3 in OutDir/node.3, and
	// nothing else is written. Where ranks are on several machines, it is on that of the lost node's rank.
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
		if n.failing != "" {
			reasons = append(reasons, n.Dir+" cannot be read: "+n.failing)
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
// [*NotLostError], and renames nothing, where the newest may come back and does not, as where a disk is full.
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
	latest := g.options.Roots && g.options.Step == Latest
	v := session.Verb{Name: "recover", Args: o, Access: store.Access{Writes: writes, Makes: writes}}
	if latest {
		v.Passed = map[int64]*session.LostError{}
	}
	for {
		r, err := run(ctx, g, v, func(ctx context.Context, s *session.Session, around *surroundings) (*RecoverReport, error) {
			switch {
			case len(o.Files) > 0:
				return recoverFiles(ctx, s, o)
			case !latest:
				return recoverGroup(ctx, s, o)
			}
			return recoverLatest(ctx, s, around, o, writes)
		})
		lost := new(session.LostError)
		if !errors.As(err, &lost) {
			return r, err
		}
		v.Passed[lost.Step] = lost
	}
}

// recoverLatest recovers the snapshot that was chosen, and renames newer ones when it is back.
func recoverLatest(ctx context.Context, s *session.Session, around *surroundings, o RecoverOptions, writes bool) (r *RecoverReport, err error) {
	if s.Manifest == nil && len(s.Key) == 0 && s.Complete(false) == nil && !slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Lost }) {
		r = &RecoverReport{Step: s.Taken, Notes: []string{session.StepName(*s.Taken) + " is at every node, and not protected: nothing was compared"}}
		return r, around.renameNewer(ctx, s, writes, &r.Notes)
	}
	if r, err = recoverGroup(ctx, s, o); err == nil {
		if err = r.Incomplete(); err != nil {
			err = s.SharedError(ctx, err)
		}
	}
	switch {
	case err == nil:
		return r, around.renameNewer(ctx, s, writes, &r.Notes)
	case s.Agreed && !errors.As(err, new(*session.LostError)):
		err = &NotLostError{Step: *s.Taken, Err: err}
	}
	return nil, err
}

func recoverGroup(ctx context.Context, s *session.Session, o RecoverOptions) (_ *RecoverReport, err error) {
	start := time.Now()
	if s.Manifest == nil {
		return nil, s.SharedError(ctx, s.Unprotected())
	}
	if o.OutDir != "" {
		s.Redirected = map[int]bool{}
		for i, x := range s.States {
			if x.Lost || x.Failing != "" {
				s.Redirected[i], x.Lost, x.Failing, x.Unreachable = true, true, "", false
			}
		}
	}
	var outNotes []string
	if o.OutDir != "" && !o.DryRun {
		undo := disk.Unmake(s.Disk, o.OutDir)
		defer func() {
			if err == nil {
				return
			}
			for _, n := range s.Nodes {
				if s.Redirected[n.Index] {
					n.Close()
				}
			}
			undo()
		}()
		if outNotes, err = session.OpenOut(ctx, s, o.OutDir); err != nil {
			return nil, err
		}
	}
	if !o.DryRun && o.OutDir == "" {
		survey.Sweep(s)
	}
	r := &RecoverReport{Step: s.Taken, Generation: s.Generation, Traffic: erasure.NewTraffic(len(s.Nodes))}
	targets := map[int]*restore.Target{} // of nodes here that can be read
	defer restore.Discard(targets)
	var rebuild *survey.Rebuild
	if survey.Rebuildable(s) && !o.DryRun && o.OutDir == "" {
		rebuild = &survey.Rebuild{Targets: targets, Room: func(ctx context.Context) error { return checkRoom(ctx, s, o, targets) }, Traffic: &r.Traffic}
	}
	found, err := survey.Take(ctx, s, o.Revert, rebuild)
	if err != nil {
		return nil, err
	}
	r.Blocks = len(found.Rows)
	s.Log.DebugContext(ctx, "found what is missing", "blocks", r.Blocks, "repairs", len(found.Repairs))
	r.Notes = slices.Concat(s.Notes(), outNotes, pass.NoteTorn(s, found.Conditions))
	for n, c := range found.Conditions {
		report := reportOf(s, n, c)
		report.failing = c.Failing
		r.Nodes = append(r.Nodes, report)
		r.noteEdits(s.States[n].Dir, c.Findings, o)
	}
	unrecovered := make([][]string, len(s.Nodes))
	for i, n := range s.Nodes {
		if c := found.Conditions[n.Index]; s.Restores(n.Index) {
			unrecovered[i] = append(survey.GiveUp(s, n, c, found.Beyond), survey.HiddenNotes(n, c, c.Findings)...)
		}
	}
	for _, n := range s.Nodes {
		if targets[n.Index] == nil && n.Dir != nil && found.Conditions[n.Index].Failing == "" && s.Restores(n.Index) {
			targets[n.Index] = survey.NewTarget(s, n, found.Conditions[n.Index])
		}
	}
	complete, err := restoreAll(ctx, s, o, r, found, targets, unrecovered)
	if err == nil && complete { // else an earlier generation may be of use yet
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

// checkRoom returns an error where there is no room for what is to come back at targets, before it is sent or written.
func checkRoom(ctx context.Context, s *session.Session, o RecoverOptions, targets map[int]*restore.Target) error {
	lack := guard.Lack{Subject: "what comes back", Advice: "make room, or give an empty directory where there is more"}
	if o.Files == nil {
		lack.Option = protection.OptionFiles
	}
	return guard.CheckRoom(ctx, s, lack, func(n *store.Node) store.Writes { return targets[n.Index].Writes() })
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

// restoreAll checks that there is room, and brings back what the targets are to have. It reports whether all is back: the
// texts in unrecovered say what is not. A dry run only takes these texts into the report.
func restoreAll(ctx context.Context, s *session.Session, o RecoverOptions, r *RecoverReport, found *survey.Survey, targets map[int]*restore.Target, unrecovered [][]string) (complete bool, err error) {
	if o.DryRun {
		for i := range unrecovered {
			unrecovered[i] = printable.Texts(unrecovered[i])
		}
		lists, err := session.Exchange(ctx, s, unrecovered)
		r.Unrecovered = slices.Concat(lists...)
		return false, err
	}
	if err := checkRoom(ctx, s, o, targets); err != nil {
		return false, err
	}
	eachTarget := func(f func(ctx context.Context, x *restore.Target) error) error {
		return s.EachSteady(ctx, func(ctx context.Context, _ int, n *store.Node) error {
			x := targets[n.Index]
			if x == nil {
				return nil
			}
			return x.Try(ctx, func() error { return f(ctx, x) })
		})
	}
	if err := eachTarget(func(ctx context.Context, x *restore.Target) error { return x.Prepare(ctx) }); err != nil {
		return false, err
	}
	if err := survey.RunRepairs(ctx, s, found.Repairs, targets, &r.Traffic); err != nil {
		return false, err
	}
	if err := eachTarget(func(_ context.Context, x *restore.Target) error { return x.Finish() }); err != nil {
		return false, err
	}
	if err := s.Steadied(ctx, found.Conditions); err != nil {
		return false, err
	}
	type outcome struct {
		Recovered          protection.Recovered
		Sent               int64
		Replaced           []files.Name
		Unrecovered, Notes []string
		Complete           bool
		Tidied             bool // nothing is left there of interrupted runs but generations that are pending
	}
	// Everything that is to be written is there, at all nodes that are not left out.
	outcomes, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (outcome, error) {
		d, x := outcome{Sent: r.Traffic.Sent[i]}, targets[n.Index]
		if x == nil {
			d.Unrecovered, d.Complete = printable.Texts(unrecovered[i]), found.Conditions[n.Index].Failing == ""
			return d, nil
		}
		if err := x.Try(ctx, x.Commit); err != nil {
			return d, err
		}
		if x.Failed != nil {
			x.Unfinished = []string{fmt.Sprintf("%s: nothing more is recovered here: %v", n.DirName, x.Failed)}
		}
		d.Recovered, d.Replaced, d.Complete, d.Tidied = x.Recovered, append(x.Replaced, n.Replaced...), x.Unfinished == nil, x.Failed == nil
		d.Unrecovered = printable.Texts(slices.Concat(unrecovered[i], x.Blocked, x.Unfinished))
		d.Notes = printable.Texts(append(x.Notes, x.UnsetNotes()...))
		return d, nil
	})
	if err != nil {
		return false, err
	}
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
	if s.Tidies { // else the notes have what is left
		cleaned := complete && len(o.Files) == 0
		r.Notes = append(r.Notes, s.Leftovers(func(n int, name string) bool {
			return outcomes[n].Tidied && (cleaned || slices.Contains(s.States[n].Leftovers, name))
		})...)
	}
	return complete, nil
}
