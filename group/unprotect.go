package group

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"volley/group/internal/session"
	"volley/group/internal/snapshot"
	"volley/group/internal/store"
	"volley/group/internal/survey"
	"volley/group/internal/tree"
	"volley/transport"
)

// UnprotectOptions say how to end a protection.
type UnprotectOptions struct {
	Options
	Force  bool // also where something is lost or damaged, which then never comes back; files are not read
	DryRun bool // remove nothing
}

// An UnprotectReport says what Unprotect has removed.
type UnprotectReport struct {
	Generation  int64        `json:"generation"` // that was in force; 0: an earlier run had begun to remove it
	Nodes       []NodeReport `json:"nodes"`      // as they were found
	Tolerate    int          `json:"tolerate"`
	ParityBytes int64        `json:"parity_bytes"` // at each node
	Notes       []string     `json:"notes,omitempty"`
}

// Unprotect removes the .volley of all nodes: the group is not protected any more. Files of the nodes stay as they
// are. It reads them first, and returns an [*InputError] where something is lost or damaged, unless o.Force is set, and
// where .volley/replaced holds files of the user's.
//
// Nothing is removed before all nodes are marked. Until then the protection is in force, and a later Protect or
// Recover removes the marks. After an error, or the end of a process at any moment, calling it again completes it.
func Unprotect(ctx context.Context, t transport.Transport, dirs []string, o UnprotectOptions) (*UnprotectReport, error) {
	v := session.Verb{Name: "unprotect", Args: o, Access: store.Access{Writes: !o.DryRun}, Ends: true}
	return run(ctx, t, dirs, o.Options, v, func(ctx context.Context, s *session.Session, _ *snapshot.Surroundings) (*UnprotectReport, error) {
		r := &UnprotectReport{Generation: s.Generation}
		if s.Manifest == nil && !s.Ending() {
			return nil, s.Alike(ctx, s.Unprotected())
		}
		var err error
		if r.Nodes, err = losesNothing(ctx, s, 0, o.Force); err != nil {
			return nil, err
		}
		if s.Manifest != nil {
			r.Tolerate, r.ParityBytes = s.Manifest.Tolerate, s.Manifest.ParityBytes()
		}
		r.Notes = s.Notes()
		if o.DryRun {
			return r, nil
		}
		if err := s.Each(ctx, func(_ context.Context, _ int, n *store.Node) error { return n.Mark() }); err != nil {
			return nil, err
		}
		if err := s.Together(ctx); err != nil {
			return nil, err
		}
		return r, s.Here(func(_ int, n *store.Node) error { return n.Forget() })
	})
}

// losesNothing returns an error where files of the nodes from one on would be lost with their protection.
func losesNothing(ctx context.Context, s *session.Session, from int, force bool) (list []NodeReport, err error) {
	if err := s.Each(ctx, func(_ context.Context, _ int, n *store.Node) error {
		if n.Dir == nil || n.Index < from {
			return nil
		}
		kept, err := n.Dir.ReadDir(store.MetaPath(store.ReplacedName))
		if len(kept) > 0 {
			return store.Inputf("%s has files that recover has replaced: move it away, and look what you need of them", n.Path(tree.Name(store.MetaPath(store.ReplacedName))))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}); err != nil || s.Manifest == nil {
		return nil, err
	}
	conditions, err := survey.ExamineAll(ctx, s, from, force, false)
	if err != nil {
		return nil, err
	}
	for n, c := range conditions {
		if n < from {
			continue
		}
		list = append(list, NodeReport{Node: n, Dir: s.States[n].Dir, Status: c.Status(), Findings: c.Findings})
		lost := c.Status()
		if slices.Contains([]string{Whole, Changed, Damaged, Stale}, lost) {
			lost = "" // unless a finding is of a file
		}
		for _, f := range c.Findings {
			if own := strings.HasPrefix(string(f.Path), tree.MetaName+"/"); !own && (f.What == Missing || f.What == Damaged || f.What == Stale) {
				lost = fmt.Sprintf("%s: %s", f.What, tree.JoinPath(s.States[n].Dir, f.Path))
			}
		}
		if lost != "" && !force {
			return nil, s.Alike(ctx, &InputError{Way: WayGiveUp, Err: fmt.Errorf("%s is %s: recover it first, as nothing can afterwards", s.Name(n), lost)})
		}
	}
	return list, nil
}
