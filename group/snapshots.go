package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
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

	root  string         // of the manifest in force; "": there is none
	seats []*rootState   // where its nodes lie or are to lie, by node
	stale []session.Seat // roots that have something else of that name, which was never in force
	Err   error          `json:"-"` // why it is unclear or busy
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
// the node that its newest snapshot says, and one that says nothing takes a free place. A snapshot may be of more nodes than
// there are roots, or fewer. It reads no file but manifests and records.
func (g *Group) Snapshots(ctx context.Context) (*SnapshotsReport, error) {
	return meet(ctx, g, func(s *session.Session) (*SnapshotsReport, error) {
		start := time.Now()
		s.Roots = true
		if err := s.Meet(ctx, len(g.dirs), session.Verb{Name: "snapshots"}); err != nil {
			return nil, err
		}
		s.Place(g.dirs)
		found, err := lookAround(ctx, s, Latest)
		if err != nil {
			return nil, err
		}
		defer found.Close()
		r := &SnapshotsReport{Nodes: s.K, Snapshots: []Snapshot{}}
		for _, x := range found.Roots {
			if x.Spare == "" {
				r.Roots = append(r.Roots, x.Dir)
			}
			if x.Failing != "" {
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

// A rootState is what a root has, or a spare in it, which has what nodes had that are missing.
type rootState struct {
	session.Seat
	Failing string // why it cannot be read
	Steps   map[int64]*store.State

	path   string                // of one here
	opened map[int64]*store.Node // there: snapshots that are open, and locked until the run ends
}

type surroundings struct {
	Roots []*rootState   // by node, each with the spares in it
	List  []Snapshot     // the newest first
	mine  [][]*rootState // of the nodes here
}

// Close gives the locks back.
func (f *surroundings) Close() {
	if f == nil {
		return
	}
	for _, x := range slices.Concat(f.mine...) {
		for _, n := range x.opened {
			n.Close()
		}
	}
}

// lookAtRoot returns which snapshots are in the root of a node, and then in each spare, or why it cannot be read.
func lookAtRoot(s *session.Session, n *store.Node) (list []*rootState, err error) {
	for names := []string{""}; len(names) > 0; names = names[1:] {
		x := &rootState{
			Seat:    session.Seat{Node: n.Index, Spare: names[0], Dir: tree.JoinPath(n.RootName, tree.Name(names[0]))},
			Failing: n.Absent, Steps: map[int64]*store.State{}, opened: map[int64]*store.Node{}, path: filepath.Join(n.Root, names[0]),
		}
		if list = append(list, x); x.Failing != "" {
			continue
		}
		steps, spares, err := session.LookIn(s.Disk, x.path)
		if session.IsInputError(err) {
			return nil, err
		} else if err != nil {
			x.Failing = err.Error()
		}
		for _, step := range steps {
			x.Steps[step] = &store.State{Node: -1}
		}
		if x.Spare == "" && !s.Seated {
			names = append(names, spares...)
		}
	}
	return list, nil
}

// steps returns the snapshots of a root, the newest first.
func (x *rootState) steps() []int64 {
	return slices.SortedFunc(maps.Keys(x.Steps), session.NewestFirst)
}

// lookAround finds out which snapshots there are, or how one is, but for the one that this run has locked. It takes the locks
// of all of them before it reads the first: what it finds stays so until they are given back. Node 0's decide between two runs.
func lookAround(ctx context.Context, s *session.Session, step int64) (found *surroundings, err error) {
	found = &surroundings{mine: make([][]*rootState, len(s.Nodes))}
	defer func() {
		if err != nil {
			found.Close()
		}
	}()
	for _, first := range []bool{true, false} {
		if err := s.EachSteady(ctx, func(_ context.Context, i int, n *store.Node) (err error) {
			if (n.Index == 0) == first {
				found.mine[i], err = lockAll(s, n, step)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if found.Roots, err = eachRoot(ctx, s, found, func(ctx context.Context, x *rootState) (*rootState, error) {
		for step, snapshot := range x.opened {
			x.Steps[step] = snapshot.Load(s.Key, s.K)
			snapshot.Held, snapshot.Unread = nil, nil // which take memory
		}
		return x, ctx.Err()
	}); err != nil {
		return nil, err
	}
	// Another run may have begun before all had read, where there was no lock to share, or locks do not reach all machines.
	taken, err := eachRoot(ctx, s, found, func(_ context.Context, x *rootState) (taken []int64, _ error) {
		for step, snapshot := range x.opened {
			if snapshot.Bare && !snapshot.IsBare() || s.Verb.Writes && disk.Confirm(snapshot.Dir, store.MetaPath(store.LockFile), s.Holder()) != nil {
				taken = append(taken, step)
			}
		}
		return taken, nil
	})
	if err != nil {
		return nil, err
	}
	for i, steps := range taken {
		for _, step := range steps {
			if x := found.Roots[i].Steps[step]; x != nil {
				x.Busy = &files.BusyError{Path: x.Dir}
			}
		}
	}
	found.assess(s)
	return found, nil
}

// eachRoot calls f for the roots and spares here, and gives all ranks what it returns of each of all.
func eachRoot[T any](ctx context.Context, s *session.Session, found *surroundings, f func(context.Context, *rootState) (T, error)) ([]T, error) {
	lists, err := session.Collect(ctx, s, func(ctx context.Context, i int, _ *store.Node) ([]T, error) {
		list := make([]T, len(found.mine[i]))
		for j, x := range found.mine[i] {
			var err error
			if list[j], err = f(ctx, x); err != nil {
				return nil, err
			}
		}
		return list, nil
	})
	return slices.Concat(lists...), err
}

// lockAll opens and locks all snapshots in the root of a node, or one.
func lockAll(s *session.Session, n *store.Node, wanted int64) (list []*rootState, err error) {
	list, err = lookAtRoot(s, n)
	for _, x := range list {
		for _, step := range x.steps() {
			if wanted != Latest && step != wanted || s.Taken != nil && step == *s.Taken {
				delete(x.Steps, step)
				continue
			}
			snapshot := n.Sub(filepath.Join(x.Spare, session.StepName(step)))
			err := snapshot.Hold(s.Disk, store.Access{Writes: s.Verb.Writes, Concurrent: s.Verb.Concurrent}, s.Holder())
			switch busy, locked := errors.AsType[*files.BusyError](err); {
			case errors.As(err, new(*files.SharedError)):
				snapshot.Close()
				return list, err
			case locked:
				x.Steps[step].Busy = busy
			case err != nil:
				x.Steps[step].Failing = err.Error()
			case snapshot.Dir == nil: // it has gone meanwhile
				delete(x.Steps, step)
			default:
				x.opened[step] = snapshot
				continue
			}
			snapshot.Close()
		}
	}
	return list, err
}

// assess says of all snapshots how they are.
func (f *surroundings) assess(s *session.Session) {
	var steps []int64
	for _, x := range f.Roots {
		steps = append(steps, x.steps()...)
	}
	slices.SortFunc(steps, session.NewestFirst)
	for _, step := range slices.Compact(steps) {
		x := assess(step, f.Roots, s.Trust())
		if lost := s.Verb.Passed[step]; lost != nil && x.root == lost.Root && x.State != Busy {
			x.State, x.Reason = Incomplete, lost.Error()
		}
		f.List = append(f.List, x)
	}
	for i := range f.List {
		x := &f.List[i]
		earlier := slices.IndexFunc(f.List[i:], func(o Snapshot) bool { return o.Nodes > 0 })
		if x.State == Unprotected && earlier > 0 && f.List[i+earlier].Nodes > len(x.Present) {
			o := f.List[i+earlier]
			x.State, x.Reason = Incomplete, fmt.Sprintf("it is not protected, and %d nodes have it: %s is of a group of %d", len(x.Present), session.StepName(o.Step), o.Nodes)
		}
	}
}

func (x *Snapshot) unclear(err error) { x.State, x.Reason, x.Err = Unclear, err.Error(), err }

// A gaps says what all nodes lack of a snapshot, by where they lie.
type gaps struct {
	lost, unread, damaged []string
	busy                  *files.BusyError // who writes to it; nil: nobody
}

// statesOf returns the states of all nodes in a snapshot, and what they lack.
func (x *Snapshot) statesOf() (states []*store.State, g gaps) {
	for n, root := range x.seats {
		state := root.Steps[x.Step]
		if state != nil {
			x.Present = append(x.Present, n)
		} else {
			state = &store.State{Node: -1, Failing: root.Failing, Lost: root.Failing == ""}
		}
		state.Node = state.NumberAmong(len(x.seats))
		state.Dir = tree.JoinPath(root.Dir, tree.Name(session.StepName(x.Step)))
		switch states = append(states, state); {
		case state.Busy != nil:
			g.busy = cmp.Or(g.busy, state.Busy)
		case state.Failing != "":
			g.unread = append(g.unread, fmt.Sprintf("%s (%s)", root.Dir, state.Failing))
		case state.Lost:
			g.lost = append(g.lost, root.Dir)
		}
		g.damaged = append(g.damaged, state.Bad...)
	}
	return states, g
}

// assess says how a snapshot is, by the states of all nodes: by what is there, what is lost for certain, and what could
// not be read and may be there.
func assess(step int64, roots []*rootState, o judge.Trust) Snapshot {
	x := Snapshot{Step: step, State: Incomplete, Present: []int{}, Holders: []int{}}
	if err := x.seat(roots); err != nil {
		x.unclear(err)
		return x
	}
	states, g := x.statesOf()
	if g.busy != nil {
		x.State, x.Reason, x.Err = Busy, g.busy.Error(), g.busy
		return x
	}
	current, _, err := judge.InForce(states, o, false)
	tolerate := 0
	var lacking []string
	for n, state := range states {
		if h := state.Holding(current); h != nil {
			x.Holders, tolerate = append(x.Holders, n), h.Tolerate
			x.Since = cmp.Or(x.Since, h.Since)
		} else {
			lacking = append(lacking, x.seats[n].Dir)
		}
	}
	x.root = current.Root
	few := func(nodes []string) error { return &protection.TooManyError{Nodes: nodes, Tolerate: tolerate} }
	switch {
	case err != nil:
		if unreadable := slices.Concat(g.unread, g.damaged); unreadable != nil {
			err = fmt.Errorf("%w; not read: %s", err, strings.Join(unreadable, "; "))
		}
		x.unclear(err)
	case current.Generation == 0 && g.unread != nil:
		x.unclear(fmt.Errorf("no node that could be read says that it is protected, and these could not be read: %s", strings.Join(g.unread, ", ")))
	case current.Generation == 0 && g.damaged != nil:
		x.unclear(fmt.Errorf("nothing that could be read says that it is protected, and this could not be read: %s", strings.Join(g.damaged, "; ")))
	case current.Generation == 0 && g.lost == nil && len(o.Key) == 0: // with a key, what is not protected does not count
		x.State = Unprotected
	case current.Generation == 0:
		x.Reason = "it is not protected"
		if g.lost != nil {
			x.Reason += ", and missing or empty at " + strings.Join(g.lost, ", ")
		}
	case len(g.lost) > tolerate:
		x.Reason = few(slices.Concat(g.lost, g.unread)).Error()
	case len(g.lost)+len(g.unread) > tolerate:
		x.unclear(few(slices.Concat(g.lost, g.unread)))
	case lacking != nil:
		x.State, x.Reason = Recoverable, "not whole at "+strings.Join(lacking, ", ")
	default:
		x.State = InForce
	}
	return x
}

func draftName(step int64) string { return session.StepName(step) + ".draft" }

// DraftSnapshot makes a directory for the files of a snapshot in a root, empty, and returns its path. It does not count as a
// snapshot until [CompleteSnapshot] gives it its name.
func DraftSnapshot(root string, step int64) (string, error) {
	if root == "" || step < 0 {
		return "", Inputf("a draft of step %d in %q: want a root, and a step of 0 or more", step, root)
	}
	if _, err := disk.Make(disk.OS, root, 0o777); err != nil {
		return "", err
	}
	dir, err := disk.OS.Open(root)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	name := draftName(step)
	if err := disk.RemoveAll(dir, name); err != nil {
		return "", err
	}
	return filepath.Join(root, name), dir.Mkdir(name, 0o777)
}

// CompleteSnapshot gives the draft of a snapshot its name, lastingly. It does nothing where there is no draft.
func CompleteSnapshot(root string, step int64) error {
	dir, err := disk.OS.Open(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer dir.Close()
	draft, name := draftName(step), session.StepName(step)
	if _, err := dir.Lstat(draft); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := dir.Lstat(name); err == nil {
		return Inputf("%s is there already, and %s was written for it: move one of them away", filepath.Join(root, name), filepath.Join(root, draft))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := dir.Rename(draft, name); err != nil {
		return fmt.Errorf("%s cannot get its name: %w", filepath.Join(root, draft), err)
	}
	return dir.SyncDir(".")
}
