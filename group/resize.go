package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"volley/collective"
	"volley/group/internal/judge"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/transport"
)

// ResizeOptions say how the nodes of a group change.
type ResizeOptions struct {
	ProtectOptions          // Retain is not for it
	Add            []string `json:"-"` // of the directories at this rank, those that are new
	Remove         []string // nodes that leave, by directory or number; alike at all ranks
}

// A ResizeReport says what Resize has done, and what Protect has with the nodes that there are now.
type ResizeReport struct {
	*ProtectReport
	NodesBefore int      `json:"nodes_before"`
	Added       []string `json:"added,omitempty"`   // directories
	Removed     []string `json:"removed,omitempty"` // directories
	Lost        []string `json:"lost,omitempty"`    // of the removed ones, those that are not there, or have nothing
	Remains     []string `json:"remains,omitempty"` // of the removed ones, those that cannot be read: all that they have stays
}

// Resize adds nodes to a protected group, or removes some, and protects the nodes that there are then. The directories of
// g are those of all nodes, new and removed ones too: open the group anew without those that were removed. Their files
// stay, and their .volley goes. Snapshots of roots are not resized.
//
// The earlier protection is in force until the new one is complete at all nodes. After an error, or the end of a
// process, the group is protected with the nodes that it had or is to have, and calling it again completes it. Resize
// reads the removed nodes, and returns a [*protection.RefusedError] where they are lost or damaged, unless o.Force is set.
//
// With several ranks the directories are in the order of [Resized]. Where nodes are removed, each has one node.
func (g *Group) Resize(ctx context.Context, o ResizeOptions) (*ResizeReport, error) {
	v := session.Verb{Name: "resize", Args: o, Access: store.Access{Writes: !o.DryRun}, Added: o.Add}
	v.Order = func(names []string, ids []protection.Identity, added []bool) ([]int, error) {
		return session.Resized(names, ids, added, o.Remove)
	}
	return meet(ctx, g, func(s *session.Session) (*ResizeReport, error) {
		if s.Roots || o.Retain > 0 {
			return nil, store.Inputf("snapshots are not resized: protect the next one with other nodes")
		}
		if err := s.Look(ctx, g.dirs, v); err != nil {
			return nil, err
		}
		return resize(ctx, s, &o)
	})
}

// resize does what Resize does, once all nodes have been looked at.
func resize(ctx context.Context, s *session.Session, o *ResizeOptions) (r *ResizeReport, err error) {
	k, newest := s.K-len(o.Remove), newestCommitted(s)
	r = newResizeReport(s.States, k)
	if err := resizable(s, o, k, r.NodesBefore); err != nil {
		return nil, s.SharedError(ctx, err)
	}
	var notes []string
	if isResized(s.States[:k], newest) {
		for _, dir := range r.Added {
			notes = append(notes, fmt.Sprintf("%s is a node of the group already, and is not added", dir))
		}
		r.NodesBefore, r.Added = k, nil
	}
	completes := newest.Nodes == k // what an earlier run has made
	if !completes {
		err = findFormer(ctx, s, r.NodesBefore, k, o)
	}
	for n, x := range s.States {
		if x.Added = x.Added && !completes; n < k && completes {
			x.Node = x.NumberAmong(k)
		}
	}
	if err != nil {
		return nil, err
	}
	if resized := withNodes(s, k); len(resized.Nodes) > 0 {
		if completes {
			err = resized.Find(ctx)
		}
		if err == nil {
			r.ProtectReport, err = protect(ctx, resized, o.ProtectOptions)
		}
		if err != nil {
			return nil, err
		}
		r.Notes = append(notes, r.Notes...)
	}
	err = collective.Barrier(ctx, s.T, 0) // ranks of removed nodes wait as long as the others take
	if err == nil && !o.DryRun {
		err = s.EachSteady(ctx, func(_ context.Context, _ int, n *store.Node) error {
			if n.Index < k {
				return nil
			}
			return n.Forget(false)
		})
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// newResizeReport says which of these nodes are new, and which of those from k on are removed.
func newResizeReport(states []*store.State, k int) *ResizeReport {
	r := &ResizeReport{}
	for n, x := range states {
		switch {
		case n < k && x.Added:
			r.Added = append(r.Added, x.Dir)
		case n >= k:
			r.Removed = append(r.Removed, x.Dir)
			if x.Lost {
				r.Lost = append(r.Lost, x.Dir)
			}
			if x.Failing != "" {
				r.Remains = append(r.Remains, x.Dir)
			}
		}
	}
	r.NodesBefore = len(states) - len(r.Added)
	return r
}

// newestCommitted returns the newest generation that any node has committed.
func newestCommitted(s *session.Session) (newest store.Held) {
	for _, x := range s.States {
		for _, h := range x.Held {
			later := cmp.Or(cmp.Compare(h.Epoch, newest.Epoch), cmp.Compare(h.Generation, newest.Generation)) > 0
			if h.Committed && (len(s.Key) == 0 || h.Vouched) && later {
				newest = h
			}
		}
	}
	return newest
}

// withNodes returns the session of the first k nodes, at the ranks that have them.
func withNodes(s *session.Session, k int) *session.Session {
	resized := *s
	resized.K, resized.States = k, s.States[:k]
	resized.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n *store.Node) bool { return n.Index >= k })
	if s.T.Size() > 1 && k < s.K {
		ranks := make([]int, k)
		for r := range ranks {
			ranks[r] = r
		}
		resized.T = transport.Subset(s.T, ranks)
	}
	return &resized
}

// isResized reports whether an earlier run has made a generation of all these nodes, as far as they can be read.
func isResized(states []*store.State, newest store.Held) bool {
	return newest.Nodes == len(states) && !slices.ContainsFunc(states, func(x *store.State) bool {
		return !x.Lost && x.Failing == "" && !slices.ContainsFunc(x.Held, func(h store.Held) bool { return h.Committed && h.Root == newest.Root })
	})
}

// resizable returns an error where the nodes cannot be those of a run that resizes a group of so many nodes to k.
func resizable(s *session.Session, o *ResizeOptions, k, formerNodes int) error {
	if s.Meta != "" {
		return store.Inputf("the protection lies in %s, by the numbers of nodes: end it, and protect the nodes that there are to be", s.Meta)
	}
	if k < 2 || k == formerNodes {
		return store.Inputf("a group of %d nodes is to have %d: want another number, 2 or more", formerNodes, k)
	}
	if k < s.K && s.T.Size() > 1 && s.T.Size() < s.K {
		return store.Inputf("several processes have several nodes each: give each process one")
	}
	for n, x := range s.States {
		named := slices.Contains(o.Remove, x.Dir) || x.Node < 0 || slices.Contains(o.Remove, fmt.Sprint(x.NumberAmong(formerNodes)))
		if n >= k && (!named || x.Added) {
			return store.Inputf("%s is not to be removed, and comes after all nodes that stay: give the removed nodes last", x.Dir)
		}
	}
	return nil
}

// formerStates notes which of the former nodes each directory is, and returns the states of these, by node.
func formerStates(states []*store.State, formerNodes int) []*store.State {
	former := make([]*store.State, formerNodes)
	var rest []*store.State
	for _, x := range states {
		if x.Node = x.NumberAmong(formerNodes); x.Added {
			continue
		}
		if x.Node >= 0 && x.Node < formerNodes && former[x.Node] == nil {
			former[x.Node] = x
		} else {
			rest = append(rest, x)
		}
	}
	for i := range former {
		if former[i] == nil {
			former[i], rest = rest[0], rest[1:]
		}
	}
	return former
}

// findFormer finds out what is in force with the nodes that there were, and checks that all can go on from there.
func findFormer(ctx context.Context, s *session.Session, formerNodes, k int, o *ResizeOptions) (err error) {
	if s.Current, _, err = judge.InForce(formerStates(s.States, formerNodes), s.Trust(), false); err != nil {
		return s.SharedError(ctx, err)
	}
	if s.Generation == 0 {
		return s.SharedError(ctx, s.Unprotected())
	}
	s.Newest = judge.NewestOf(s.States, s.Generation)
	holder := slices.IndexFunc(s.States, func(x *store.State) bool { return !x.Added && x.Holding(s.Current) != nil })
	texts, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) ([]byte, error) {
		switch x := s.States[n.Index]; {
		case n.Index == holder:
			return n.Held[s.Generation].Text, nil
		case n.Dir != nil || x.Failing != "" || n.Index >= k:
		case x.Added:
			return nil, store.Inputf("%s: no such directory", n.DirName)
		default:
			return nil, store.Inputf("%s is missing, with what was protected: recover it first, or remove the node", n.DirName)
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	s.Text = texts[holder]
	if s.Manifest, err = store.DecodeManifest(s.Text); err != nil {
		return err
	}
	if err := checkStaying(s, k, o.Force); err != nil {
		return s.SharedError(ctx, err)
	}
	s.RecordOf = map[int]*store.Record{}
	for _, n := range s.Nodes {
		if x := s.States[n.Index]; !x.Added && x.Holding(s.Current) != nil && x.Node >= 0 {
			text, err := n.Read(n.Held[s.Generation], s.Manifest.RecordFilesAt(x.Node)[0])
			if err == nil {
				s.RecordOf[n.Index], err = s.Manifest.DecodeRecord(text)
			}
			if err != nil && !o.Force {
				return err
			}
		}
	}
	_, err = checkLosses(ctx, s, k, o.Force)
	return err
}

// isVoid reports whether a generation that an added directory has of another group can never come into force: it is pending,
// and a node that was to have it is here, in this group.
func isVoid(s *session.Session, h store.Held) bool {
	return !h.Committed && slices.ContainsFunc(s.States, func(x *store.State) bool {
		return !x.Added && x.Holding(s.Current) != nil && slices.Contains(slices.Concat(h.Names, h.Replaces), x.Name)
	})
}

// checkStaying returns an error where nodes are foreign, or not as they were protected and not given up by force.
func checkStaying(s *session.Session, k int, force bool) error {
	for n, x := range s.States {
		h := x.Holding(s.Current)
		switch {
		case x.Added && slices.ContainsFunc(x.Held, func(h store.Held) bool { return h.Group != s.Manifest.Group && !isVoid(s, h) }):
			return store.Inputf("%s is protected in another group: end that, or move its %s away", x.Dir, tree.MetaName)
		case x.Added:
		case n >= k && force && x.Failing != "":
			x.Lost, x.Failing, x.Unreachable = true, "", false
		case n >= k && x.Failing != "":
			return &protection.RefusedError{Option: protection.OptionGiveUp, Err: fmt.Errorf("%s cannot be read, and is to be removed: %s. Run again when it can be", s.Name(n), x.Failing)}
		case x.Failing == "" && !force && (h == nil || x.Node < 0 || len(h.Records) < len(s.Manifest.RecordFilesAt(x.Node))):
			option := protection.OptionForce
			if n >= k {
				option = protection.OptionGiveUp
			}
			return &protection.RefusedError{Option: option, Err: fmt.Errorf("%s is missing what was protected: recover it first", s.Name(n))}
		}
	}
	return s.Complete(force)
}
