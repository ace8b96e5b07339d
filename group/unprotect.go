package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"volley/group/internal/content"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/survey"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// UnprotectOptions say how to end a protection.
type UnprotectOptions struct {
	Force  bool // also where something is lost or damaged, which then never comes back; files are not read
	DryRun bool // remove nothing
}

// An UnprotectReport says what Unprotect has removed.
type UnprotectReport struct {
	Protected   bool         `json:"protected"`  // else there was nothing to remove
	Generation  int64        `json:"generation"` // that was in force; 0: an earlier run had begun to remove it
	Nodes       []NodeReport `json:"nodes"`      // as they were found
	Tolerate    int          `json:"tolerate"`
	ParityBytes int64        `json:"parity_bytes"`      // at each node
	Remains     []string     `json:"remains,omitempty"` // directories that could not be read, and may still have a .volley
	Notes       []string     `json:"notes,omitempty"`

	metas []string // of what remains: see RemainsError
}

// A RemainsError names the nodes that could not be read, so that their .volley stays. The protection has ended.
type RemainsError struct {
	Dirs  []string
	Metas []string // where the .volley of each lies
}

// ExitCode returns 3, that of a result that is not as it should be.
func (e *RemainsError) ExitCode() int { return 3 }

func (e *RemainsError) Error() string {
	return fmt.Sprintf("the protection is removed, but for nodes that cannot be read, which may still have it: %s. Once they can be read, end it again, or remove %s", strings.Join(e.Dirs, ", "), strings.Join(e.Metas, ", "))
}

// Unprotect removes the .volley of all nodes: the group is not protected any more. Files of the nodes stay as they
// are. It reads them first, and returns a [*protection.RefusedError] where something is lost or damaged, unless o.Force is set, and
// where .volley/replaced holds files of the user's. Where nothing is protected any more, it changes nothing.
//
// With o.Force it goes on beside nodes that cannot be read, whose .volley stays, and returns a [*RemainsError] with the
// report. The other nodes keep a mark, so that what comes back counts no more.
//
// Nothing is removed before all nodes are marked. Until then the protection is in force, and a later Protect or
// Recover removes the marks. After an error, or the end of a process at any moment, calling it again completes it.
func (g *Group) Unprotect(ctx context.Context, o UnprotectOptions) (*UnprotectReport, error) {
	v := session.Verb{Name: "unprotect", Args: o, Access: store.Access{Writes: !o.DryRun}, Ends: true, Forced: o.Force}
	r, err := run(ctx, g, v, func(ctx context.Context, s *session.Session) (*UnprotectReport, error) {
		return unprotect(ctx, s, &o)
	})
	if err == nil && !o.DryRun && r.Remains != nil {
		err = &RemainsError{r.Remains, r.metas}
	}
	return r, err
}

func unprotect(ctx context.Context, s *session.Session, o *UnprotectOptions) (r *UnprotectReport, err error) {
	r = &UnprotectReport{Generation: s.Generation, Nodes: []NodeReport{}}
	if r.Protected, err = hasProtection(ctx, s, o.Force); err != nil || !r.Protected {
		return r, err
	}
	list, err := checkLosses(ctx, s, 0, o.Force)
	if err != nil {
		return nil, err
	}
	r.Nodes = append(r.Nodes, list...)
	if s.Manifest != nil {
		r.Tolerate, r.ParityBytes = s.Manifest.Tolerate, s.Manifest.ParityBytes()
	}
	r.Notes = s.Notes()
	for _, x := range s.States {
		if x.Failing != "" {
			r.Remains, r.metas = append(r.Remains, x.Dir), append(r.metas, x.Path(tree.MetaName))
		}
	}
	if o.DryRun {
		return r, nil
	}
	if err := s.EachSteady(ctx, func(_ context.Context, _ int, n *store.Node) error {
		if len(s.States[n.Index].Numbers) == 0 { // a mark alone says that it has ended
			return nil
		}
		return n.Mark(endingGroup(s))
	}); err != nil {
		return nil, err
	}
	if err := s.Barrier(ctx); err != nil {
		return nil, err
	}
	return r, s.EachLocal(func(_ int, n *store.Node) error { return n.Forget(r.Remains != nil) })
}

// hasProtection reports whether there is a protection to end, or the rest of one. The error is that of nodes of which nobody
// can tell.
func hasProtection(ctx context.Context, s *session.Session, force bool) (bool, error) {
	remains := slices.ContainsFunc(s.States, func(x *store.State) bool { return len(x.Numbers) > 0 })
	switch {
	case s.Manifest != nil || s.Ending(), remains && force:
		return true, nil
	case remains:
		return false, s.SharedError(ctx, &protection.RefusedError{Option: protection.OptionGiveUp, Err: s.Unprotected()})
	}
	present, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (bool, error) { return n.Dir != nil, nil })
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Failing != "" }) || !slices.Contains(present, true) {
		return false, s.SharedError(ctx, s.Unprotected())
	}
	return false, nil
}

// endingGroup returns the group whose protection ends.
func endingGroup(s *session.Session) string {
	if s.Manifest != nil {
		return s.Manifest.Group
	}
	for _, x := range s.States {
		if group := cmp.Or(x.Group, x.Ended); group != "" {
			return group
		}
	}
	return ""
}

// checkLosses returns an error where files of the nodes from one on would be lost with their protection.
func checkLosses(ctx context.Context, s *session.Session, first int, force bool) (list []NodeReport, err error) {
	if err := s.EachSteady(ctx, func(_ context.Context, _ int, n *store.Node) error {
		if n.Index < first {
			return nil
		}
		return checkReplaced(n)
	}); err != nil || s.Manifest == nil {
		return nil, err
	}
	part := scrub.EntireNode
	if force {
		part = scrub.Part{}
	}
	conditions, err := survey.ExamineAll(ctx, s, first, part, protection.Edits{})
	if err != nil {
		return nil, err
	}
	bare, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (bool, error) {
		record := s.RecordOf[n.Index]
		return record != nil && len(record.Entries) == 1, nil // its directory, and nothing in it
	})
	if err != nil {
		return nil, err
	}
	for n := first; n < s.K; n++ {
		list = append(list, reportOf(s, n, conditions[n]))
		if x := s.States[n]; s.Ending() && x.Holding(s.Current) == nil && (x.Files || bare[n]) { // its own is removed: which files have moved nobody can tell
			continue
		}
		if lost := lossAt(s, n, conditions[n]); lost != "" && !force {
			return nil, s.SharedError(ctx, &protection.RefusedError{Option: protection.OptionGiveUp, Err: fmt.Errorf("%s is %s: recover it first, as nothing can afterwards", s.Name(n), lost)})
		}
	}
	return list, nil
}

// checkReplaced returns an error where a node has files of the user's in .volley/replaced.
func checkReplaced(n *store.Node) error {
	if n.Dir == nil {
		return nil
	}
	kept, err := n.Dir.ReadDir(store.MetaPath(store.ReplacedName))
	name := n.Path(tree.Name(store.MetaPath(store.ReplacedName)))
	switch {
	case len(kept) > 0:
		return store.Inputf("%s has files that recover has replaced: move it away, and look what you need of them", name)
	case errors.Is(err, syscall.ENOTDIR):
		return store.Inputf("%s is no directory, and the name is Volley's own: move it away", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// lossAt says what of a node is lost or damaged that nobody brings back without its protection; "": nothing.
func lossAt(s *session.Session, n int, c *content.Condition) (lost string) {
	if status := c.Status(); !slices.Contains([]string{Intact, Changed, Damaged, Stale}, status) { // of these some have lost no file
		lost = status
	}
	for _, f := range c.Findings {
		if internal := strings.HasPrefix(string(f.Path), tree.MetaName+"/"); !internal && (f.Kind == Missing || f.Kind == Damaged || f.Kind == Stale) {
			lost = fmt.Sprintf("%s: %s", f.Kind, s.States[n].Path(f.Path))
		}
	}
	return lost
}
