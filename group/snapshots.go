package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"volley/group/internal/tree"

	"volley/internal/disk"
	"volley/transport"
)

// Latest is the newest snapshot: see Options.Step.
const Latest int64 = -1

// States of a snapshot.
const (
	InForce     = "in force"    // every node has it as it was protected, as far as its records tell
	Recoverable = "recoverable" // lost nodes can be recovered
	Unprotected = "unprotected" // every node has it, and it is not protected
	Incomplete  = "incomplete"  // a node lacks it, and cannot get it back
)

// A Snapshot is the directories step-<Step> of all roots: a group of its own.
type Snapshot struct {
	Step    int64     `json:"step"`
	State   string    `json:"state"`
	Since   time.Time `json:"protected_at,omitzero"` // when it came into force at the first node that has it
	Present []int     `json:"present"`               // nodes that have the directory
	Holders []int     `json:"holders"`               // nodes that have what is in force
	Why     string    `json:"why,omitempty"`         // it is not in force

	busy *disk.BusyError // another run writes to it
}

// A SnapshotsReport lists the snapshots of roots.
type SnapshotsReport struct {
	Nodes     int        `json:"nodes"`
	Places    []string   `json:"places"`           // roots, by node
	Latest    *int64     `json:"latest,omitempty"` // that Recover takes
	Snapshots []Snapshot `json:"snapshots"`        // the newest first
	Notes     []string   `json:"notes,omitempty"`
	Seconds   float64    `json:"seconds"`
}

// Snapshots lists the snapshots of roots: directories step-N, N a decimal number without leading zeros. Other names do
// not count, so that whoever writes a snapshot gives it its name when it is complete. A root belongs to the node that
// its newest snapshot says, and one that says nothing takes a free place. It reads no file but manifests and records.
func Snapshots(ctx context.Context, t transport.Transport, roots []string, o Options) (*SnapshotsReport, error) {
	o.Roots = true
	return meeting(ctx, t, o, func(s *session) (*SnapshotsReport, error) {
		start := time.Now()
		if err := s.meet(ctx, len(roots), verb{name: "snapshots"}); err != nil {
			return nil, err
		}
		s.place(roots)
		found, err := s.lookAround(ctx)
		if err != nil {
			return nil, err
		}
		r := &SnapshotsReport{Nodes: s.k, Snapshots: []Snapshot{}}
		for _, x := range found.roots {
			if r.Places = append(r.Places, x.Dir); x.Failing != "" {
				r.Notes = append(r.Notes, fmt.Sprintf("%s cannot be read: %s", x.Dir, x.Failing))
			}
		}
		r.Snapshots = append(r.Snapshots, found.list...)
		if i := slices.IndexFunc(found.list, found.latest); i >= 0 {
			r.Latest = &found.list[i].Step
		}
		r.Seconds = time.Since(start).Seconds()
		return r, nil
	})
}

// protected reports whether all nodes have a snapshot as it was protected, or can get it back.
func (x Snapshot) protected() bool { return x.State == InForce || x.State == Recoverable }

func stepName(step int64) string { return fmt.Sprint("step-", step) }

// stepOf returns the snapshot of which a directory is, or was until it was set aside.
func stepOf(name string) (step int64, ok bool) {
	parts := stepNames.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	step, err := strconv.ParseInt(parts[1], 10, 64)
	return step, err == nil
}

var stepNames = regexp.MustCompile(`^step-(0|[1-9][0-9]*)(?:\.aside-.*)?$`)

func newestFirst(a, b int64) int { return cmp.Compare(b, a) }

func (n *node) snapshot(step int64) *node {
	return &node{
		index: n.index, name: n.name, absent: n.absent, root: n.root, rootName: n.rootName,
		at: filepath.Join(n.root, stepName(step)), given: tree.JoinPath(n.rootName, tree.Name(stepName(step))),
	}
}

// stepsIn returns the snapshots in a root, the newest first. A root that is missing has none.
func stepsIn(d disk.Disk, root string) (steps []int64, err error) {
	dir, err := d.Open(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, inputf("%s is not a directory: name the root of a node's snapshots", root)
	case err != nil:
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(".")
	for _, e := range entries {
		if step, ok := stepOf(e.Name()); ok && e.Name() == stepName(step) && e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.SortFunc(steps, newestFirst)
	return steps, err
}

// IdentifyRoot returns which node a root is by its newest snapshot that says so, without the group.
func IdentifyRoot(root string) Identity { return identifyRoot(disk.OS, root) }

func identifyRoot(d disk.Disk, root string) Identity {
	steps, err := stepsIn(d, root)
	for _, step := range steps {
		if is := identify(d, filepath.Join(root, stepName(step))); is.Node >= 0 {
			is.Group, is.Name = "", whole(root)
			return is
		}
	}
	return Identity{Node: -1, Name: whole(root), Empty: err == nil && steps == nil}
}

type rootState struct {
	Dir     string
	Failing string // why it cannot be read
	Steps   map[int64]*state
}

type surroundings struct {
	roots  []rootState // by node
	list   []Snapshot  // the newest first
	others bool        // one is of another number of nodes: roots may have been left out
}

// lookAround finds out which snapshots there are, but for the one that this run has locked.
func (s *session) lookAround(ctx context.Context) (*surroundings, error) {
	roots, err := collect(ctx, s, func(ctx context.Context, _ int, n *node) (rootState, error) {
		x := rootState{Dir: n.rootName, Failing: n.absent, Steps: map[int64]*state{}}
		if x.Failing != "" {
			return x, nil
		}
		steps, err := stepsIn(s.disk, n.root)
		if IsInputError(err) {
			return x, err
		} else if err != nil {
			x.Failing = err.Error()
		}
		for _, step := range steps {
			if s.step != nil && step == *s.step {
				continue
			}
			at := n.snapshot(step)
			busy := new(disk.BusyError)
			switch err := at.open(s.disk, verb{}, disk.HolderOf("snapshots", s.run)); {
			case errors.As(err, &busy):
				x.Steps[step] = &state{Node: -1, Busy: busy}
			case err != nil:
				x.Steps[step] = &state{Node: -1, Failing: err.Error()}
			default:
				x.Steps[step] = at.load(s.Key, s.k)
			}
			at.close()
		}
		return x, ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	found := &surroundings{roots: roots}
	for _, step := range found.steps() {
		found.list = append(found.list, found.judge(step, &s.Options))
	}
	return found, nil
}

// steps returns all steps of which a root has a directory, the newest first.
func (f *surroundings) steps() (steps []int64) {
	for _, x := range f.roots {
		steps = slices.AppendSeq(steps, maps.Keys(x.Steps))
	}
	slices.SortFunc(steps, newestFirst)
	return slices.Compact(steps)
}

func (f *surroundings) judge(step int64, o *Options) Snapshot {
	x := Snapshot{Step: step, State: Incomplete, Present: []int{}, Holders: []int{}}
	var states []*state
	var lost, lacking []string
	for n, root := range f.roots {
		is := root.Steps[step]
		switch {
		case is != nil:
			x.Present = append(x.Present, n)
		case root.Failing != "":
			is = &state{Node: -1, Failing: root.Failing}
		default:
			is = &state{Node: -1, Lost: true}
		}
		is.Dir = tree.JoinPath(root.Dir, tree.Name(stepName(step)))
		if is.Failing != "" {
			lost = append(lost, fmt.Sprintf("%s (%s)", root.Dir, is.Failing))
		} else if is.Lost {
			lost = append(lost, root.Dir)
		}
		x.busy = cmp.Or(x.busy, is.Busy)
		f.others = f.others || slices.ContainsFunc(is.Held, func(h held) bool { return h.Nodes != len(f.roots) })
		states = append(states, is)
	}
	in, _, err := inForce(states, o, false)
	tolerate := 0
	for n, is := range states {
		if h := is.of(in); h != nil {
			x.Holders, tolerate = append(x.Holders, n), h.Tolerate
			x.Since = cmp.Or(x.Since, h.Since)
		} else {
			lacking = append(lacking, f.roots[n].Dir)
		}
	}
	switch {
	case x.busy != nil:
		x.Why = x.busy.Error()
	case err != nil:
		x.Why = err.Error()
	case in.generation == 0 && lost == nil && len(o.Key) == 0: // with a key, what is not protected does not count
		x.State = Unprotected
	case in.generation == 0:
		x.Why = "it is not protected"
		if lost != nil {
			x.Why += ", and missing at " + strings.Join(lost, ", ")
		}
	case len(lost) > tolerate:
		x.Why = (&TooManyError{Nodes: lost, Tolerate: tolerate}).Error()
	case lacking != nil:
		x.State, x.Why = Recoverable, "to be recovered: "+strings.Join(lacking, ", ")
	default:
		x.State = InForce
	}
	return x
}

// latest reports whether Recover takes a snapshot, if it is the newest of these.
func (f *surroundings) latest(x Snapshot) bool {
	return x.protected() || x.State == Unprotected && !f.others
}

// noneOf returns the error of roots of which no snapshot will do.
func (f *surroundings) noneOf(passed map[int64]string) error {
	var list []string
	for _, x := range f.list {
		list = append(list, fmt.Sprintf("%s: %s", stepName(x.Step), cmp.Or(passed[x.Step], x.Why, "it is not protected")))
	}
	if list == nil {
		list = []string{"no root has a directory step-N (N a number without leading zeros)"}
	}
	return inputf("no snapshot can be recovered: %s", strings.Join(list, "; "))
}

// pick settles which snapshot the directories of this run are.
func (s *session) pick(ctx context.Context, v verb) error {
	step := s.Step
	if step < Latest {
		return s.alike(ctx, inputf("there is no step %d: a step is 0 or more", step))
	}
	if step == Latest || v.needs {
		var err error
		if s.around, err = s.lookAround(ctx); err != nil {
			return err
		}
		if step, err = s.choose(s.around, v); err != nil {
			return s.alike(ctx, err)
		}
	}
	for _, n := range s.nodes {
		*n = *n.snapshot(step)
	}
	s.step = &step
	return nil
}

// choose returns the snapshot that a verb is to take. All ranks find the same.
func (s *session) choose(found *surroundings, v verb) (int64, error) {
	if !v.needs {
		for _, x := range found.list {
			if x.busy != nil && v.writes { // which may put it in force, or be about to use it
				return 0, x.busy
			}
			if (x.protected() || s.passed != nil && found.latest(x)) && s.passed[x.Step] == "" {
				return x.Step, nil
			}
		}
		return 0, found.noneOf(s.passed)
	}
	for _, x := range found.list {
		if (s.Step == Latest || s.Step == x.Step) && len(x.Present) == s.k {
			return x.Step, nil
		}
	}
	var list []string
	for _, root := range found.roots {
		var has []string
		for _, x := range found.list {
			if root.Steps[x.Step] != nil {
				has = append(has, stepName(x.Step))
			}
		}
		list = append(list, fmt.Sprintf("%s has %s", root.Dir, cmp.Or(strings.Join(has, ", "), cmp.Or(root.Failing, "none"))))
	}
	what := "no step-N (N a number without leading zeros)"
	if s.Step != Latest {
		what = stepName(s.Step)
	}
	return 0, inputf("%s is not at every node: %s. A node that has lost its snapshots gets the latest back by recover", what, strings.Join(list, "; "))
}

// setAside renames snapshots newer than the recovered one, so that no mixture of old and new files is protected.
func (s *session) setAside(ctx context.Context, r *RecoverReport, writes bool) error {
	newer := func(x Snapshot) bool { return x.Step > *s.step }
	for _, x := range s.around.list {
		if newer(x) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is passed over: %s", stepName(x.Step), cmp.Or(s.passed[x.Step], x.Why)))
		}
	}
	if !writes {
		return nil
	}
	_, err := s.clear(ctx, newer, false, &r.Notes)
	return err
}

// retire removes snapshots older than the newest protected ones that are retained. This one is in force everywhere.
func (s *session) retire(ctx context.Context, retain int, r *ProtectReport) (err error) {
	if s.around, err = s.lookAround(ctx); err != nil {
		return err
	}
	kept := []int64{*s.step}
	for _, x := range s.around.list {
		if x.protected() {
			kept = append(kept, x.Step)
		}
	}
	slices.SortFunc(kept, newestFirst)
	old := func(x Snapshot) bool { return len(kept) >= retain && x.Step < kept[retain-1] }
	r.Removed, err = s.clear(ctx, old, true, &r.Notes)
	return err
}

// clear renames, and removes if asked to, snapshots that no other run uses, and returns which are gone everywhere.
func (s *session) clear(ctx context.Context, which func(Snapshot) bool, remove bool, notes *[]string) (gone []int64, err error) {
	for _, x := range s.around.list {
		if which(x) {
			gone = append(gone, x.Step)
		}
	}
	type left struct {
		Steps []int64
		Notes []string
	}
	all, err := collect(ctx, s, func(_ context.Context, _ int, n *node) (x left, _ error) {
		root, err := s.disk.Open(n.root)
		if n.absent != "" || err != nil {
			return x, nil // nothing is there that could go
		}
		defer root.Close()
		for _, step := range gone {
			at := n.snapshot(step)
			err := at.open(s.disk, verb{writes: true}, disk.HolderOf("protect", s.run))
			if err == nil && at.dir != nil {
				err = root.Rename(stepName(step), stepName(step)+".aside-"+s.run)
			}
			if at.close(); err != nil {
				x.Steps, x.Notes = append(x.Steps, step), append(x.Notes, fmt.Sprintf("%s stays: %v", at.given, err))
			}
		}
		root.SyncDir(".") // a rename that a power cut undoes is made again by the next run
		entries, _ := root.ReadDir(".")
		for _, e := range entries {
			if step, ok := stepOf(e.Name()); ok && remove && e.Name() != stepName(step) {
				if err := disk.RemoveAll(root, e.Name()); err != nil {
					x.Notes = append(x.Notes, fmt.Sprintf("%s is not removed: %v", tree.JoinPath(n.rootName, tree.Name(e.Name())), err))
				}
			}
		}
		x.Notes = escaped(x.Notes)
		return x, nil
	})
	for _, x := range all {
		*notes = append(*notes, x.Notes...)
		gone = slices.DeleteFunc(gone, func(step int64) bool { return slices.Contains(x.Steps, step) })
	}
	return gone, err
}
