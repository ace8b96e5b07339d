package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"volley/files"
	"volley/group/internal/judge"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// States of a snapshot.
const (
	InForce     = "in force"    // every node has it as it was protected, as far as its records tell
	Recoverable = "recoverable" // lost nodes can be recovered
	Unprotected = "unprotected" // every node has it, and it is not protected
	Incomplete  = "incomplete"  // for certain it does not come back: too much is lost, or it was never protected
	Unclear     = "unclear"     // it may be in force: something could not be read, or contradicts the rest
	Busy        = "busy"        // another run has its lock, so nothing of it was read
)

// A Snapshot is the directories step-<Step> of all roots: a group of its own.
type Snapshot struct {
	Step    int64     `json:"step"`
	State   string    `json:"state"`
	Since   time.Time `json:"protected_at,omitzero"` // when it came into force at the first node that has it
	Nodes   int       `json:"nodes,omitempty"`       // of the group that has protected it; 0: no manifest was found
	Present []int     `json:"present"`               // nodes that have the directory
	Holders []int     `json:"holders"`               // nodes that have what is in force
	Reason  string    `json:"why,omitempty"`         // it is not in force

	root     string // of the manifest in force; "": there is none
	tolerate int    // nodes that may be lost, by that
	Err      error  `json:"-"` // why it is unclear or busy
}

// A SnapshotsReport lists the snapshots of roots.
type SnapshotsReport struct {
	Nodes     int        `json:"nodes"`
	Roots     []string   `json:"places"`           // roots, by node
	Latest    *int64     `json:"latest,omitempty"` // that Recover takes
	Snapshots []Snapshot `json:"snapshots"`        // the newest first
	Notes     []string   `json:"notes,omitempty"`
	Seconds   float64    `json:"seconds"`
}

// Snapshots lists the snapshots of roots, which the directories are: directories step-N, N a decimal number without leading
// zeros. Other names do not count, so that whoever writes a snapshot gives it its name when it is complete. A root belongs to
// the node that its newest snapshot says, and one that says nothing takes a free place. It reads no file but manifests and
// records.
func (g *Group) Snapshots(ctx context.Context) (*SnapshotsReport, error) {
	return meet(ctx, g, func(s *session.Session) (*SnapshotsReport, error) {
		start := time.Now()
		s.Roots = true
		v := session.Verb{Name: "snapshots"}
		if err := s.Meet(ctx, len(g.dirs), v); err != nil {
			return nil, err
		}
		s.Place(g.dirs, v)
		found, err := lookAround(ctx, s, v)
		if err != nil {
			return nil, err
		}
		defer found.Close()
		r := &SnapshotsReport{Nodes: s.K, Snapshots: []Snapshot{}}
		for _, x := range found.Roots {
			if r.Roots = append(r.Roots, x.Dir); x.Failing != "" {
				r.Notes = append(r.Notes, fmt.Sprintf("%s cannot be read: %s", x.Dir, x.Failing))
			}
		}
		r.Snapshots = append(r.Snapshots, found.List...)
		if i, err := choose(found.List, false); err == nil {
			r.Latest = &found.List[i].Step
		}
		r.Seconds = time.Since(start).Seconds()
		return r, nil
	})
}

// A rootState is what a root has.
type rootState struct {
	Dir     string
	Failing string // why it cannot be read
	Steps   map[int64]*store.State
}

type surroundings struct {
	Roots  []rootState             // by node
	List   []Snapshot              // the newest first
	opened []map[int64]*store.Node // of the roots here: snapshots that are open, and locked until the run ends
}

// Close gives the locks back.
func (f *surroundings) Close() {
	if f == nil {
		return
	}
	for _, snapshots := range f.opened {
		for _, n := range snapshots {
			n.Close()
		}
	}
}

// stepsOf returns the snapshots in the root of a node, and why it cannot be read.
func stepsOf(s *session.Session, n *store.Node) (x rootState, steps []int64, err error) {
	if x = (rootState{Dir: n.RootName, Failing: n.Absent}); x.Failing != "" {
		return x, nil, nil
	}
	steps, err = session.StepsIn(s.Disk, n.Root)
	if err != nil && !session.IsInputError(err) {
		x.Failing, err = err.Error(), nil
	}
	return x, steps, err
}

// lookAround finds out which snapshots there are, but for the one that this run has locked. It takes the locks of all
// of them before it reads the first: what it finds stays so until they are given back. Node 0's decide between two runs.
func lookAround(ctx context.Context, s *session.Session, v session.Verb) (found *surroundings, err error) {
	found = &surroundings{opened: make([]map[int64]*store.Node, len(s.Nodes))}
	defer func() {
		if err != nil {
			found.Close()
		}
	}()
	mine := make([]rootState, len(s.Nodes))
	for _, first := range []bool{true, false} {
		if err := s.EachSteady(ctx, func(_ context.Context, i int, n *store.Node) (err error) {
			if (n.Index == 0) == first {
				mine[i], found.opened[i], err = lockAll(s, n, v)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if found.Roots, err = session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (rootState, error) {
		for step, snapshot := range found.opened[i] {
			mine[i].Steps[step] = snapshot.Load(s.Key, s.K)
			snapshot.Held, snapshot.Unread = nil, nil // which take memory
		}
		return mine[i], ctx.Err()
	}); err != nil {
		return nil, err
	}
	// Another run may have begun before all had read, where there was no lock to share, or locks do not reach all machines.
	taken, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (taken []int64, _ error) {
		for step, snapshot := range found.opened[i] {
			if snapshot.Bare && !snapshot.IsBare() || v.Writes && disk.Confirm(snapshot.Dir, store.MetaPath(store.LockFile), s.Holder(v)) != nil {
				taken = append(taken, step)
			}
		}
		return taken, nil
	})
	if err != nil {
		return nil, err
	}
	for n, steps := range taken {
		for _, step := range steps {
			if x := found.Roots[n].Steps[step]; x != nil {
				x.Busy = &files.BusyError{Path: x.Dir}
			}
		}
	}
	found.assess(s)
	return found, nil
}

// lockAll opens and locks all snapshots in the root of a node.
func lockAll(s *session.Session, n *store.Node, v session.Verb) (x rootState, open map[int64]*store.Node, err error) {
	x, steps, err := stepsOf(s, n)
	x.Steps, open = map[int64]*store.State{}, map[int64]*store.Node{}
	if err != nil {
		return x, open, err
	}
	holder := s.Holder(v)
	for _, step := range steps {
		if s.Taken != nil && step == *s.Taken {
			continue
		}
		snapshot := n.Sub(session.StepName(step))
		err := snapshot.Hold(s.Disk, store.Access{Writes: v.Writes, Concurrent: v.Concurrent}, holder)
		switch busy, locked := errors.AsType[*files.BusyError](err); {
		case errors.As(err, new(*files.SharedError)):
			snapshot.Close()
			return x, open, err
		case locked:
			x.Steps[step] = &store.State{Node: -1, Busy: busy}
		case err != nil:
			x.Steps[step] = &store.State{Node: -1, Failing: err.Error()}
		case snapshot.Dir != nil: // else it has gone meanwhile
			open[step] = snapshot
			continue
		}
		snapshot.Close()
	}
	return x, open, nil
}

// assess says of all snapshots how they are.
func (f *surroundings) assess(s *session.Session) {
	var steps []int64
	for _, x := range f.Roots {
		steps = slices.AppendSeq(steps, maps.Keys(x.Steps))
	}
	slices.SortFunc(steps, session.NewestFirst)
	mismatch := "" // of how many nodes a snapshot is, where that is another number
	for _, step := range slices.Compact(steps) {
		nodes := 0
		states := make([]*store.State, len(f.Roots))
		for n, root := range f.Roots {
			state := root.Steps[step]
			switch {
			case state != nil:
			case root.Failing != "":
				state = &store.State{Node: -1, Failing: root.Failing}
			default:
				state = &store.State{Node: -1, Lost: true}
			}
			state.Dir = tree.JoinPath(root.Dir, tree.Name(session.StepName(step)))
			for _, h := range state.Held {
				if nodes = max(nodes, h.Nodes); h.Nodes != len(f.Roots) {
					mismatch = fmt.Sprintf("%s is of a group of %d nodes, and %d were given", state.Dir, h.Nodes, len(f.Roots))
				}
			}
			states[n] = state
		}
		x := assess(step, f.Roots, states, s.Trust())
		x.Nodes = nodes
		f.List = append(f.List, x)
	}
	for i := range f.List {
		if x := &f.List[i]; x.State == Unprotected && mismatch != "" {
			x.unclear(store.Inputf("it is not protected, and roots may have been left out: %s", mismatch))
		} else if lost := s.Passed[x.Step]; lost != nil && x.root == lost.Root && x.State != Busy {
			x.State, x.Reason = Incomplete, lost.Error()
		}
	}
}

func (x *Snapshot) unclear(err error) { x.State, x.Reason, x.Err = Unclear, err.Error(), err }

// assess says how a snapshot is, by the states of all nodes: by what is there, what is lost for certain, and what could
// not be read and may be there.
func assess(step int64, roots []rootState, states []*store.State, o judge.Trust) Snapshot {
	x := Snapshot{Step: step, State: Incomplete, Present: []int{}, Holders: []int{}}
	var lost, unread, damaged, lacking []string
	var busy *files.BusyError
	for n, state := range states {
		switch dir := roots[n].Dir; {
		case state.Busy != nil:
			busy = cmp.Or(busy, state.Busy)
		case state.Failing != "":
			unread = append(unread, fmt.Sprintf("%s (%s)", dir, state.Failing))
		case state.Lost:
			lost = append(lost, dir)
		}
		if roots[n].Steps[step] != nil {
			x.Present = append(x.Present, n)
		}
		damaged = append(damaged, state.Bad...)
	}
	if busy != nil {
		x.State, x.Reason, x.Err = Busy, busy.Error(), busy
		return x
	}
	current, _, err := judge.InForce(states, o, false)
	tolerate := 0
	for n, state := range states {
		if h := state.Holding(current); h != nil {
			x.Holders, tolerate = append(x.Holders, n), h.Tolerate
			x.Since = cmp.Or(x.Since, h.Since)
		} else {
			lacking = append(lacking, roots[n].Dir)
		}
	}
	x.root, x.tolerate = current.Root, tolerate
	few := func(nodes []string) error { return &protection.TooManyError{Nodes: nodes, Tolerate: tolerate} }
	switch {
	case err != nil:
		if unreadable := slices.Concat(unread, damaged); unreadable != nil {
			err = fmt.Errorf("%w; not read: %s", err, strings.Join(unreadable, "; "))
		}
		x.unclear(err)
	case current.Generation == 0 && unread != nil:
		x.unclear(fmt.Errorf("no node that could be read says that it is protected, and these could not be read: %s", strings.Join(unread, ", ")))
	case current.Generation == 0 && damaged != nil:
		x.unclear(fmt.Errorf("nothing that could be read says that it is protected, and this could not be read: %s", strings.Join(damaged, "; ")))
	case current.Generation == 0 && lost == nil && len(o.Key) == 0: // with a key, what is not protected does not count
		x.State = Unprotected
	case current.Generation == 0:
		x.Reason = "it is not protected"
		if lost != nil {
			x.Reason += ", and missing or empty at " + strings.Join(lost, ", ")
		}
	case len(lost) > tolerate:
		x.Reason = few(slices.Concat(lost, unread)).Error()
	case len(lost)+len(unread) > tolerate:
		x.unclear(few(slices.Concat(lost, unread)))
	case lacking != nil:
		x.State, x.Reason = Recoverable, "not whole at "+strings.Join(lacking, ", ")
	default:
		x.State = InForce
	}
	return x
}
