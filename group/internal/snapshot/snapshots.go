// Package snapshot finds the snapshots in the roots of nodes, decides which of them a verb takes, and removes those that
// nobody needs any more.
package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"volley/group/internal/decide"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/transport"
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
	Why     string    `json:"why,omitempty"`         // it is not in force

	root     string // of the manifest in force; "": there is none
	tolerate int    // nodes that may be lost, by that
	Err      error  `json:"-"` // why it is unclear or busy
}

// A Report lists the snapshots of roots.
type Report struct {
	Nodes     int        `json:"nodes"`
	Roots     []string   `json:"places"`           // roots, by node
	Latest    *int64     `json:"latest,omitempty"` // that Recover takes
	Snapshots []Snapshot `json:"snapshots"`        // the newest first
	Notes     []string   `json:"notes,omitempty"`
	Seconds   float64    `json:"seconds"`
}

// List lists the snapshots of roots: directories step-N, N a decimal number without leading zeros. Other names do
// not count, so that whoever writes a snapshot gives it its name when it is complete. A root belongs to the node that
// its newest snapshot says, and one that says nothing takes a free place. It reads no file but manifests and records.
func List(ctx context.Context, t transport.Transport, roots []string, o session.Options) (*Report, error) {
	o.Roots = true
	return session.Meeting(ctx, t, o, func(s *session.Session) (*Report, error) {
		start := time.Now()
		v := session.Verb{Name: "snapshots"}
		if err := s.Meet(ctx, len(roots), v); err != nil {
			return nil, err
		}
		s.Place(roots, v)
		found, err := lookAround(ctx, s, v)
		if err != nil {
			return nil, err
		}
		defer found.Close()
		r := &Report{Nodes: s.K, Snapshots: []Snapshot{}}
		for _, x := range found.Roots {
			if r.Roots = append(r.Roots, x.Dir); x.Failing != "" {
				r.Notes = append(r.Notes, fmt.Sprintf("%s cannot be read: %s", x.Dir, x.Failing))
			}
		}
		r.Snapshots = append(r.Snapshots, found.List...)
		if i, err := Choose(found.List, false); err == nil {
			r.Latest = &found.List[i].Step
		}
		r.Seconds = time.Since(start).Seconds()
		return r, nil
	})
}

// A RootState is what a root has.
type RootState struct {
	Dir     string
	Failing string // why it cannot be read
	Steps   map[int64]*store.State
}

type Surroundings struct {
	Roots []RootState             // by node
	List  []Snapshot              // the newest first
	here  []map[int64]*store.Node // of the roots here: snapshots that are open, and locked until the run ends
}

// Close gives the locks back.
func (f *Surroundings) Close() {
	if f == nil {
		return
	}
	for _, of := range f.here {
		for _, n := range of {
			n.Close()
		}
	}
}

// stepsOf returns the snapshots in the root of a node, and why it cannot be read.
func stepsOf(s *session.Session, n *store.Node) (x RootState, steps []int64, err error) {
	if x = (RootState{Dir: n.RootName, Failing: n.Absent}); x.Failing != "" {
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
func lookAround(ctx context.Context, s *session.Session, v session.Verb) (found *Surroundings, err error) {
	found = &Surroundings{here: make([]map[int64]*store.Node, len(s.Nodes))}
	defer func() {
		if err != nil {
			found.Close()
		}
	}()
	mine := make([]RootState, len(s.Nodes))
	for _, first := range []bool{true, false} {
		if err := s.Each(ctx, func(_ context.Context, i int, n *store.Node) (err error) {
			if (n.Index == 0) == first {
				mine[i], found.here[i], err = lockAll(s, n, v)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if found.Roots, err = session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (RootState, error) {
		for step, at := range found.here[i] {
			mine[i].Steps[step] = at.Load(s.Key, s.K)
			at.Held, at.Unread = nil, nil // which take memory
		}
		return mine[i], ctx.Err()
	}); err != nil {
		return nil, err
	}
	// Another run may have begun before all had read, where there was no lock to share, or locks do not reach all machines.
	taken, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (taken []int64, _ error) {
		for step, at := range found.here[i] {
			if at.Bare && !at.IsBare() || v.Writes && disk.Confirm(at.Dir, store.MetaPath(store.LockFile), s.Holder(v)) != nil {
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
				x.Busy = &disk.BusyError{Path: x.Dir}
			}
		}
	}
	found.Judge(s)
	return found, nil
}

// lockAll opens and locks all snapshots in the root of a node.
func lockAll(s *session.Session, n *store.Node, v session.Verb) (x RootState, open map[int64]*store.Node, err error) {
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
		at := n.Sub(session.StepName(step))
		err := at.Hold(s.Disk, store.Access{Writes: v.Writes, Beside: v.Beside}, holder)
		switch busy, is := errors.AsType[*disk.BusyError](err); {
		case errors.As(err, new(*disk.SharedError)):
			at.Close()
			return x, open, err
		case is:
			x.Steps[step] = &store.State{Node: -1, Busy: busy}
		case err != nil:
			x.Steps[step] = &store.State{Node: -1, Failing: err.Error()}
		case at.Dir != nil: // else it has gone meanwhile
			open[step] = at
			continue
		}
		at.Close()
	}
	return x, open, nil
}

// Judge says of all snapshots how they are.
func (f *Surroundings) Judge(s *session.Session) {
	var steps []int64
	for _, x := range f.Roots {
		steps = slices.AppendSeq(steps, maps.Keys(x.Steps))
	}
	slices.SortFunc(steps, session.NewestFirst)
	others := "" // of how many nodes a snapshot is, where that is another number
	for _, step := range slices.Compact(steps) {
		nodes := 0
		states := make([]*store.State, len(f.Roots))
		for n, root := range f.Roots {
			is := root.Steps[step]
			switch {
			case is != nil:
			case root.Failing != "":
				is = &store.State{Node: -1, Failing: root.Failing}
			default:
				is = &store.State{Node: -1, Lost: true}
			}
			is.Dir = tree.JoinPath(root.Dir, tree.Name(session.StepName(step)))
			for _, h := range is.Held {
				if nodes = max(nodes, h.Nodes); h.Nodes != len(f.Roots) {
					others = fmt.Sprintf("%s is of a group of %d nodes, and %d were given", is.Dir, h.Nodes, len(f.Roots))
				}
			}
			states[n] = is
		}
		x := judge(step, f.Roots, states, s.Trust())
		x.Nodes = nodes
		f.List = append(f.List, x)
	}
	for i := range f.List {
		if x := &f.List[i]; x.State == Unprotected && others != "" {
			x.unclear(store.Inputf("it is not protected, and roots may have been left out: %s", others))
		} else if lost := s.Passed[x.Step]; lost != nil && x.root == lost.Root && x.State != Busy {
			x.State, x.Why = Incomplete, lost.Error()
		}
	}
}

func (x *Snapshot) unclear(err error) { x.State, x.Why, x.Err = Unclear, err.Error(), err }

// judge says how a snapshot is, by the states of all nodes: by what is there, what is lost for certain, and what could
// not be read and may be there.
func judge(step int64, roots []RootState, states []*store.State, o decide.Trust) Snapshot {
	x := Snapshot{Step: step, State: Incomplete, Present: []int{}, Holders: []int{}}
	var lost, unread, damaged, lacking []string
	var busy *disk.BusyError
	for n, is := range states {
		switch dir := roots[n].Dir; {
		case is.Busy != nil:
			busy = cmp.Or(busy, is.Busy)
		case is.Failing != "":
			unread = append(unread, fmt.Sprintf("%s (%s)", dir, is.Failing))
		case is.Lost:
			lost = append(lost, dir)
		}
		if roots[n].Steps[step] != nil {
			x.Present = append(x.Present, n)
		}
		damaged = append(damaged, is.Bad...)
	}
	if busy != nil {
		x.State, x.Why, x.Err = Busy, busy.Error(), busy
		return x
	}
	in, _, err := decide.InForce(states, o, false)
	tolerate := 0
	for n, is := range states {
		if h := is.Of(in); h != nil {
			x.Holders, tolerate = append(x.Holders, n), h.Tolerate
			x.Since = cmp.Or(x.Since, h.Since)
		} else {
			lacking = append(lacking, roots[n].Dir)
		}
	}
	x.root, x.tolerate = in.Root, tolerate
	few := func(nodes []string) error { return &session.TooManyError{Nodes: nodes, Tolerate: tolerate} }
	switch {
	case err != nil:
		if more := slices.Concat(unread, damaged); more != nil {
			err = fmt.Errorf("%w; not read: %s", err, strings.Join(more, "; "))
		}
		x.unclear(err)
	case in.Generation == 0 && unread != nil:
		x.unclear(fmt.Errorf("no node that could be read says that it is protected, and these could not be read: %s", strings.Join(unread, ", ")))
	case in.Generation == 0 && damaged != nil:
		x.unclear(fmt.Errorf("nothing that could be read says that it is protected, and this could not be read: %s", strings.Join(damaged, "; ")))
	case in.Generation == 0 && lost == nil && len(o.Key) == 0: // with a key, what is not protected does not count
		x.State = Unprotected
	case in.Generation == 0:
		x.Why = "it is not protected"
		if lost != nil {
			x.Why += ", and missing or empty at " + strings.Join(lost, ", ")
		}
	case len(lost) > tolerate:
		x.Why = few(slices.Concat(lost, unread)).Error()
	case len(lost)+len(unread) > tolerate:
		x.unclear(few(slices.Concat(lost, unread)))
	case lacking != nil:
		x.State, x.Why = Recoverable, "not whole at "+strings.Join(lacking, ", ")
	default:
		x.State = InForce
	}
	return x
}

// Choose decides which snapshot a verb takes, of all of them, the newest first. It passes over those that for certain do
// not come back, and no others: what cannot be told of a newer one selects no older one. Verbs that only look pass over
// those, too, that are not protected yet, or are just being protected.
func Choose(list []Snapshot, looks bool) (int, error) {
	var why []string
	for i, x := range list {
		switch x.State {
		case InForce, Recoverable:
			return i, nil
		case Unprotected:
			if !looks {
				return i, nil
			}
			why = append(why, session.StepName(x.Step)+": it is not protected")
			continue
		case Busy:
			if !looks {
				return 0, x.Err
			}
		case Unclear:
			return 0, &NotLostError{x.Step, x.Err}
		}
		why = append(why, session.StepName(x.Step)+": "+x.Why)
	}
	if list == nil {
		why = []string{"no root has a directory step-N (N a number without leading zeros)"}
	}
	return 0, store.Inputf("no snapshot can be recovered: %s", strings.Join(why, "; "))
}

// Surplus decides which snapshots a run removes that has put one in force at all nodes: those that are older than so many
// of the newest ones that can be recovered. It says why others stay that are as old. Kept are those that count.
func Surplus(list []Snapshot, step int64, retain int) (gone, kept []int64, stay []string) {
	kept = []int64{step}
	for _, x := range list {
		if x.State == InForce || x.State == Recoverable {
			kept = append(kept, x.Step)
		}
	}
	slices.SortFunc(kept, session.NewestFirst)
	if len(kept) < retain {
		return nil, kept, nil
	}
	kept = kept[:retain]
	for _, x := range list {
		switch {
		case x.Step >= kept[retain-1]:
		case x.State == Unclear || x.State == Busy:
			stay = append(stay, fmt.Sprintf("%s stays: %s", session.StepName(x.Step), x.Why))
		default:
			gone = append(gone, x.Step)
		}
	}
	return gone, kept, stay
}

// A NotLostError says that no older snapshot is taken in the place of one that may come back.
type NotLostError struct {
	Step int64
	Err  error // why it does not come back now
}

// Unwrap returns why it does not come back now.
func (e *NotLostError) Unwrap() error { return e.Err }

func (e *NotLostError) Error() string {
	return fmt.Sprintf("%s: %v. It may not be lost, so no older snapshot takes its place: mend that, and run again", session.StepName(e.Step), e.Err)
}

// Pick settles which snapshot the directories of this run are. Where it was to be found, it returns the others.
func Pick(ctx context.Context, s *session.Session, v session.Verb) (found *Surroundings, err error) {
	step := s.Step
	switch {
	case step < session.Latest:
		err = s.Alike(ctx, store.Inputf("there is no step %d: a step is 0 or more", step))
	case v.Needs:
		step, err = common(ctx, s)
	case step == session.Latest:
		var i int
		if found, err = lookAround(ctx, s, v); err != nil {
			break
		}
		if i, err = Choose(found.List, s.Passed == nil); err != nil {
			err = s.Alike(ctx, err)
			break
		}
		step = found.List[i].Step
	}
	if err != nil {
		return found, err
	}
	for i, n := range s.Nodes {
		s.Nodes[i] = n.Sub(session.StepName(step))
		if found != nil && found.here[i][step] != nil {
			s.Nodes[i] = found.here[i][step]
		}
	}
	s.Taken = &step
	return found, nil
}

// common returns the step asked for, or the newest, that every root has a directory of.
func common(ctx context.Context, s *session.Session) (int64, error) {
	type root struct {
		Dir, Failing string
		Steps        []int64
	}
	roots, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (root, error) {
		x, steps, err := stepsOf(s, n)
		return root{x.Dir, x.Failing, steps}, err
	})
	if err != nil {
		return 0, err
	}
	var list []string
	count := map[int64]int{}
	newest := session.Latest
	for _, x := range roots {
		var has []string
		for _, step := range x.Steps {
			has = append(has, session.StepName(step))
			if count[step]++; count[step] == s.K && (s.Step == session.Latest || s.Step == step) {
				newest = max(newest, step)
			}
		}
		list = append(list, fmt.Sprintf("%s has %s", x.Dir, cmp.Or(strings.Join(has, ", "), x.Failing, "none")))
	}
	if newest >= 0 {
		return newest, nil
	}
	what := "no step-N (N a number without leading zeros) is"
	if s.Step != session.Latest {
		what = session.StepName(s.Step) + " is not"
	}
	return 0, s.Alike(ctx, store.Inputf("%s at every node: %s. A node that has lost its snapshots gets the latest back by recover", what, strings.Join(list, "; ")))
}

// RenameNewer renames snapshots newer than the recovered one, so that no mixture of old and new files is protected. The
// decision for that one has passed over all of them: they are lost.
func (f *Surroundings) RenameNewer(ctx context.Context, s *session.Session, writes bool, notes *[]string) error {
	var gone []int64
	for _, x := range f.List {
		if x.Step > *s.Taken {
			gone = append(gone, x.Step)
			*notes = append(*notes, fmt.Sprintf("%s is passed over: %s", session.StepName(x.Step), x.Why))
		}
	}
	if !writes {
		return nil
	}
	_, err := f.clear(ctx, s, gone, nil, notes)
	return err
}

// Retire removes snapshots older than the newest protected ones that are retained. This one is in force everywhere.
// It returns which have gone, and notes.
func Retire(ctx context.Context, s *session.Session, retain int) (removed []int64, notes []string, err error) {
	found, err := lookAround(ctx, s, session.Verb{Name: "protect", Access: store.Access{Writes: true}})
	if err != nil {
		return nil, nil, err
	}
	defer found.Close()
	lacking, err := found.glance(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	gone, kept, notes := Surplus(found.List, *s.Taken, retain)
	notes = append(lacking, notes...)
	removed, err = found.clear(ctx, s, gone, func(step int64) bool {
		return slices.Contains(kept, step) || len(kept) == retain && step < kept[retain-1]
	}, &notes)
	return removed, notes, err
}

// clear renames snapshots, whose locks this run has, and returns which are gone everywhere. It removes those renamed
// before, by this run or an earlier one, of which remove says that nobody needs them any more.
func (f *Surroundings) clear(ctx context.Context, s *session.Session, gone []int64, remove func(step int64) bool, notes *[]string) ([]int64, error) {
	type left struct {
		Steps []int64
		Notes []string
	}
	all, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (x left, _ error) {
		root, err := s.Disk.Open(n.Root)
		if n.Absent != "" || err != nil {
			return x, nil // nothing is there that could go
		}
		defer root.Close()
		for _, step := range gone {
			at := f.here[i][step]
			if at == nil {
				continue
			}
			if err := root.Rename(session.StepName(step), session.StepName(step)+".aside-"+s.Run); err != nil {
				x.Steps, x.Notes = append(x.Steps, step), append(x.Notes, fmt.Sprintf("%s stays: %v", at.Given, err))
			}
		}
		root.SyncDir(".") // a rename that a power cut undoes is made again by the next run
		entries, _ := root.ReadDir(".")
		for _, e := range entries {
			if step, ok := session.StepOf(e.Name()); ok && remove != nil && remove(step) && e.Name() != session.StepName(step) {
				if err := disk.RemoveAll(root, e.Name()); err != nil {
					x.Notes = append(x.Notes, fmt.Sprintf("%s is not removed: %v", tree.JoinPath(n.RootName, tree.Name(e.Name())), err))
				}
			}
		}
		x.Notes = printable.Texts(x.Notes)
		return x, nil
	})
	for _, x := range all {
		*notes = append(*notes, x.Notes...)
		gone = slices.DeleteFunc(gone, func(step int64) bool { return slices.Contains(x.Steps, step) })
	}
	return gone, err
}
