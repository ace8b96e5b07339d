package group

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"volley"
	"volley/collective"
	"volley/executor"
	"volley/group/internal/content"
	"volley/group/internal/decide"
	"volley/group/internal/erasure"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/sim"
	"volley/transport"
	"volley/verify"
)

// A verb is what ranks do together.
type verb struct {
	name string
	args any // its options, on which all ranks agree; nil: Options alone
	store.Access
	ends   bool                                  // the protection: it goes on where an earlier run has begun to
	added  []string                              // directories here that are new in the group
	order  ordering                              // of all directories, where one process has them; nil: that which they say
	pick   func(context.Context, *session) error // of roots, the snapshot that the nodes are
	passed map[int64]*lostError                  // snapshots that turned out to be lost; nil: there is no other to take
}

// An ordering returns which of some directories is the first, the next and so on, by what they say and which are new.
type ordering func(names []string, ids []Identity, added []bool) ([]int, error)

// A session is a run of a verb at one rank.
type session struct {
	Options
	t      transport.Transport
	k      int // nodes of the group
	nodes  []*store.Node
	states []*store.State // of all nodes
	store.Current
	seed     verify.Seed               // of the checks of this run
	run      string                    // its name
	manifest *Manifest                 // in force; nil: the group is not protected
	text     []byte                    // of it, as stored
	members  map[int]*Member           // of the nodes here
	gone     []int                     // nodes whose records no node has any more
	records  map[int]map[string][]byte // record files that nodes here lack, by name
	out      map[int]bool              // nodes that are recovered elsewhere; nil: each where it is
	adopt    bool                      // what was made without a key gets one
	taken    *int64                    // the snapshot that the nodes are; nil: none
	agreed   bool                      // all ranks find the error
	passed   map[int64]*lostError      // snapshots that turned out to be lost; nil: there is no other to take
	disk     disk.Disk
}

// terms are what ranks begin with.
type terms struct {
	Nodes   int                        // there
	What    map[string]json.RawMessage // they are to do, by option
	Run     string                     // its name, rank 0's
	Seed    verify.Seed                // rank 0's
	MAC     string                     // of that name, which tells whether another rank has another key
	Network sim.Network
	Gamma   sim.PerByte
}

// meeting calls f with a session, and tells the other ranks of an error.
func meeting[T any](ctx context.Context, t transport.Transport, o Options, f func(*session) (T, error)) (result T, err error) {
	s := &session{Options: o, t: t}
	defer func() {
		for _, n := range s.nodes {
			n.Close()
		}
	}()
	result, err = f(s)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && !errors.As(err, new(*transport.AbortError)) && !errors.As(err, new(*lostError)) {
		t.Abort(err)
	}
	return result, err
}

// look takes the directories of the nodes at this rank, locks them, and looks what all nodes hold.
func (s *session) look(ctx context.Context, dirs []string, v verb) error {
	if err := s.meet(ctx, len(dirs), v); err != nil {
		return err
	}
	if err := s.place(dirs, v); err != nil {
		return err
	}
	s.passed = v.passed
	if s.Roots {
		if err := v.pick(ctx, s); err != nil {
			return err
		}
	}
	holder := s.holder(v)
	failing, err := s.open(ctx, v, holder)
	if err != nil {
		return err
	}
	if s.states, err = collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (*store.State, error) {
		x := &store.State{Dir: n.Given, Node: -1, Failing: failing[i], Unreachable: n.Absent != ""}
		if failing[i] == "" {
			x = n.Load(s.Key, s.k)
		}
		x.Name = n.Name
		x.Added, x.ReadOnly, x.Unlocked = n.Added, n.ReadOnly, n.Dir != nil && n.Unlock == nil
		return x, ctx.Err()
	}); err != nil {
		return err
	}
	for _, x := range s.states {
		if x.ReadOnly != "" && v.Writes && !v.Makes {
			return s.alike(ctx, fmt.Errorf("%s cannot be written to: %s", x.Dir, x.ReadOnly))
		}
		x.Node = x.In(s.k)
		if x.Other > 0 {
			return s.alike(ctx, store.Inputf("%s has a manifest of version %d, and this program knows version %d: recover the group with the release that protected it. To protect it anew with this one, move the %s of every node away; if the directory is not to be trusted, give an empty one in its place", x.Dir, x.Other, store.Version, tree.MetaName))
		}
	}
	for _, n := range s.nodes { // all have their locks, and nothing is written yet
		if n.Unlock == nil || !v.Writes || n.ReadOnly != "" { // its lock says who had it when it could be written to
			continue
		}
		err := disk.Confirm(n.Dir, store.MetaPath(store.LockFile), holder)
		if shared := new(disk.SharedError); errors.As(err, &shared) {
			err = &InputError{Err: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find finds out which generation is in force, and gets its manifest and records.
func (s *session) find(ctx context.Context, v verb) (err error) {
	switch s.Current, s.adopt, err = decide.InForce(s.states, s.trust(), v.name == "protect"); {
	case err != nil && v.ends && s.ending():
		s.Current = store.Current{}
	case err != nil:
		return s.alike(ctx, err)
	}
	slog.DebugContext(ctx, "found the group", "nodes", s.k, "generation", s.Generation)
	if s.Generation == 0 {
		return nil
	}
	if err := s.fetch(ctx); err != nil || s.Meta == "" {
		return err
	}
	return s.inPlace(ctx)
}

// inPlace returns an error where a directory has another name than its node had: nothing in it says which it is.
func (s *session) inPlace(ctx context.Context) error {
	for n, x := range s.states {
		if s.manifest.Names == nil || s.manifest.Names[n] == x.Name {
			continue
		}
		if at := slices.Index(s.manifest.Names, x.Name); at >= 0 {
			return s.alike(ctx, store.Inputf("%s was node %d of the group and was given as node %d: give the directories in the order in which they were protected", x.Dir, at, n))
		}
		return s.alike(ctx, store.Inputf("%s has what belongs to %s, and %s was given: give the directory that was protected, mount a snapshot where the last one was, or name another directory with Meta", filepath.Join(s.Meta, fmt.Sprint("node.", n)), printable.Text(string(s.manifest.Names[n])), x.Dir))
	}
	return nil
}

// meet agrees with the other ranks on what they do, and on how many nodes each has.
func (s *session) meet(ctx context.Context, nodes int, v verb) error {
	s.defaults()
	s.disk = s.inner.disk
	if err := volley.Greet(ctx, s.t, v.name, s.Timeout); err != nil {
		return err
	}
	what, err := s.said(v)
	switch {
	case err != nil:
		return store.Inputf("the options of %s: %w", v.name, err)
	case s.Meta != "" && s.Roots:
		return store.Inputf("the protection of a snapshot lies beside it: leave out Meta")
	case len(s.Key) > 0 && s.NoKey:
		return store.Inputf("there are both a key and NoKey: give one of them")
	case len(s.Key) > 0:
		if err := checkKey(s.Key); err != nil {
			return err
		}
	}
	mine := terms{Nodes: nodes, What: what, Run: rand.Text(), Network: s.Network, Gamma: s.Gamma}
	rand.Read(mine.Seed[:])
	mine.MAC = store.MacOf(s.Key, store.OfRun, []byte(mine.Run))
	ranks, err := collective.AllgatherValues(ctx, s.t, mine, s.Timeout)
	if err != nil {
		return err
	}
	for r, x := range ranks {
		if x.Nodes < 0 || x.Nodes > store.MostNodes {
			return s.alike(ctx, store.Inputf("rank %d says that it has %d nodes: a group has at most %d", r, x.Nodes, store.MostNodes))
		}
		s.k += x.Nodes
		if !store.SameMAC(x.MAC, store.MacOf(s.Key, store.OfRun, []byte(x.Run))) {
			return s.alike(ctx, store.Inputf("process %d was started with another key than process %d, or one of them without: give all the same", r, s.t.Rank()))
		}
		if list := differing(x.What, ranks[0].What); list != nil {
			return s.alike(ctx, store.Inputf("process %d was started with other arguments than process 0: %s: start all with the same", r, strings.Join(list, "; ")))
		}
	}
	s.run, s.seed = ranks[0].Run, ranks[0].Seed
	s.Network, s.Gamma = ranks[0].Network, ranks[0].Gamma // all have to choose alike
	if err := cmp.Or(s.Network.Validate(), s.Gamma.Validate()); err != nil {
		return s.alike(ctx, store.Inputf("the network or γ of process 0 cannot be: %w", err))
	}
	if s.k < 2 || s.k < s.t.Size() {
		return s.alike(ctx, store.Inputf("need at least %d directories, got %d: name those of all nodes, one or more for each process", max(2, s.t.Size()), s.k))
	}
	for r, x := range ranks {
		if first, end := executor.Hosted(s.k, r, s.t.Size()); x.Nodes != end-first {
			return s.alike(ctx, store.Inputf("process %d has %d of %d directories: give every process the same number", r, x.Nodes, s.k))
		}
	}
	return nil
}

// said returns what ranks have to agree on, by name.
func (s *session) said(v verb) (map[string]json.RawMessage, error) {
	args := v.args
	if args == nil {
		args = s.Options
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	what := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &what); err != nil {
		return nil, err
	}
	for _, own := range []string{"Timeout", "Network", "Gamma", "Names", "Absent", "Meta", "Key", "Add"} { // each rank's, or rank 0's
		delete(what, own)
	}
	verb := v.name
	if s.Roots {
		verb += fmt.Sprintf(", step %d of roots", s.Step)
	}
	what["Verb"], err = json.Marshal(verb)
	return what, err
}

// differing says in what two ranks differ.
func differing(a, b map[string]json.RawMessage) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !bytes.Equal(a[name], b[name]) {
			list = append(list, fmt.Sprintf("%s is %s, and %s", name, a[name], b[name]))
		}
	}
	return list
}

// place makes the nodes of the directories here, in the order that they say; those of other ranks are in order.
func (s *session) place(dirs []string, v verb) error {
	first, _ := executor.Hosted(s.k, s.t.Rank(), s.t.Size())
	names, ids, added := make([]string, len(dirs)), make([]Identity, len(dirs)), make([]bool, len(dirs))
	for i, dir := range dirs {
		n := &store.Node{Index: first + i, At: dir, Given: dir, Name: store.Whole(dir)}
		if s.Names != nil {
			n.Given, n.Name = s.Names[i], tree.Name(s.Names[i])
		}
		if s.Absent != nil {
			n.Absent = s.Absent[i]
		}
		n.Added = slices.Contains(v.added, n.Given)
		s.nodes = append(s.nodes, n)
		id := Identity{Node: n.Index}
		switch {
		case s.Meta != "":
			n.Meta = filepath.Join(s.Meta, fmt.Sprint("node.", n.Index))
		case s.Roots:
			n.Root, n.RootName = n.At, n.Given
			id = identifyRoot(s.disk, dir)
		default:
			id = store.Identify(s.disk, dir)
		}
		id.Name = n.Name
		names[i], ids[i], added[i] = n.Given, id, n.Added
	}
	if s.t.Size() > 1 {
		return nil
	}
	order := store.Order(ids)
	if v.order != nil {
		var err error
		if order, err = v.order(names, ids, added); err != nil {
			return err
		}
	}
	given := slices.Clone(s.nodes)
	for n, i := range order {
		s.nodes[n] = given[i]
		s.nodes[n].Index = n
	}
	return nil
}

// open opens and locks the nodes here, member 0 first: it decides between two runs. It returns why nodes cannot be read.
func (s *session) open(ctx context.Context, v verb, holder disk.Holder) ([]string, error) {
	if err := s.apart(); err != nil {
		return nil, err
	}
	failing := make([]string, len(s.nodes))
	open := func(i int) error {
		n := s.nodes[i]
		if failing[i] = n.Absent; n.Absent != "" || n.Dir != nil { // or it has its lock already
			return nil
		}
		err := n.Open(s.disk, v.Access, holder)
		busy := new(disk.BusyError)
		if errors.As(err, &busy) {
			err = busy.Of(holder)
		}
		switch {
		case errors.As(err, new(*disk.SharedError)):
			return &InputError{Err: err}
		case errors.As(err, &busy), IsInputError(err):
			return err
		case err != nil:
			failing[i] = err.Error()
			n.Close()
		}
		return nil
	}
	if s.nodes[0].Index == 0 {
		if err := open(0); err != nil {
			return nil, err
		}
	}
	if err := s.together(ctx); err != nil {
		return nil, err
	}
	for i, n := range s.nodes {
		if n.Index > 0 {
			if err := open(i); err != nil {
				return nil, err
			}
		}
	}
	return failing, nil
}

// name returns what to call a node: its directory, with its number where others are called the same.
func (s *session) name(n int) string {
	dir := s.states[n].Dir
	for i, x := range s.states {
		if i != n && x.Dir == dir {
			return fmt.Sprintf("%s (node %d)", dir, n)
		}
	}
	return dir
}

// here calls f for all nodes at this rank, on all cores or in turn, and returns the error of the first of them that has one.
func (s *session) here(f func(i int, n *store.Node) error) error {
	errs := make([]error, len(s.nodes))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	if s.inner.inTurn {
		all.SetLimit(1)
	}
	for i, n := range s.nodes {
		all.Go(func() error { errs[i] = f(i, n); return nil })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// each calls f for all nodes at this rank, as here does, while the others wait.
func (s *session) each(ctx context.Context, f func(ctx context.Context, i int, n *store.Node) error) error {
	return s.steady(ctx, func(ctx context.Context) error {
		return s.here(func(i int, n *store.Node) error { return f(ctx, i, n) })
	})
}

// setting is what plans of this run are chosen and run for.
func (s *session) setting() *erasure.Setting {
	return &erasure.Setting{Memory: s.Memory, Timeout: s.Timeout, Network: s.Network, Gamma: s.Gamma, T: s.t}
}

// steady does what takes long at one rank, while the others wait.
func (s *session) steady(ctx context.Context, f func(context.Context) error) error {
	return collective.Steady(ctx, s.t, s.Timeout, f)
}

// exchange gives what every node has to say to all of them, in order.
func exchange[T any](ctx context.Context, s *session, mine []T) ([]T, error) {
	all, err := collective.AllgatherValues(ctx, s.t, mine, s.Timeout)
	return byNode(s, all, err)
}

// collect calls f for all nodes at this rank, as each does, and gives all ranks what it returns of every node, in order.
func collect[T any](ctx context.Context, s *session, f func(ctx context.Context, i int, n *store.Node) (T, error)) ([]T, error) {
	all, err := collective.SteadyValues(ctx, s.t, s.Timeout, func(ctx context.Context) ([]T, error) {
		mine := make([]T, len(s.nodes))
		return mine, s.here(func(i int, n *store.Node) (err error) {
			mine[i], err = f(ctx, i, n)
			return err
		})
	})
	return byNode(s, all, err)
}

// byNode returns what ranks say of their nodes, in order.
func byNode[T any](s *session, all [][]T, err error) ([]T, error) {
	for r, list := range all {
		first, end := executor.Hosted(s.k, r, s.t.Size())
		if len(list) != end-first || slices.ContainsFunc(list, func(x T) bool { v := reflect.ValueOf(x); return v.Kind() == reflect.Pointer && v.IsNil() }) {
			return nil, fmt.Errorf("rank %d says %d things of its %d nodes, or nothing of one", r, len(list), end-first)
		}
	}
	return slices.Concat(all...), err
}

// steadied returns an error where a node that could not be locked has changed since it was listed.
func (s *session) steadied(ctx context.Context, conditions []*content.Condition) error {
	if !slices.ContainsFunc(s.states, func(x *store.State) bool { return x.Unlocked }) {
		return nil
	}
	return s.each(ctx, func(_ context.Context, _ int, n *store.Node) error {
		was := conditions[n.Index].Listing
		if !s.states[n.Index].Unlocked || was == nil {
			return nil
		}
		is, err := tree.Scan(n.Dir, false, s.manifest.Exclude)
		if err != nil {
			return err
		}
		same := slices.EqualFunc(was.Entries, is.Entries, func(a, b *tree.Entry) bool {
			return a.Path == b.Path && a.Touch == b.Touch && a.Size == b.Size
		})
		if h := s.states[n.Index].Of(s.Current); h != nil && same {
			text, err := disk.SumText(n.Dir, n.Generation(s.Generation).Path(store.ManifestFile), store.MostManifest)
			same = err == nil && text == s.Root
		}
		if !same {
			return fmt.Errorf("%s has changed meanwhile, and could not be locked: run again when nothing else uses it", n.Given)
		}
		return nil
	})
}

// together returns when all ranks have come to it.
func (s *session) together(ctx context.Context) error {
	return collective.Barrier(ctx, s.t, s.Timeout)
}

// alike returns an error that all ranks find, once all have come to it, so that each returns its own.
func (s *session) alike(ctx context.Context, err error) error {
	s.agreed = true
	return collective.New(s.t, s.Timeout).Alike(ctx, err)
}

// complete returns an error where a node lacks what it had: to protect the rest would make the loss for good.
func (s *session) complete(force bool) error {
	for n, x := range s.states {
		if x.Failing != "" {
			return fmt.Errorf("%s cannot be read: %s", s.name(n), x.Failing)
		}
	}
	if s.Generation == 0 || force {
		return nil
	}
	for n, x := range s.states {
		if x.Of(s.Current) == nil && !x.Added {
			return &InputError{Way: WayForce, Err: fmt.Errorf("%s is missing what was protected: recover it first", s.name(n))}
		}
		if x.Interrupted() { // directories may not have their modes and times
			return &InputError{Way: WayForce, Err: fmt.Errorf("a recovery of %s has not ended: recover it first", s.name(n))}
		}
	}
	return nil
}

// unprotected returns the error of a group that has no generation in force.
func (s *session) unprotected() error {
	if !slices.ContainsFunc(s.states, func(x *store.State) bool { return !x.Lost }) {
		return store.Inputf("all nodes are lost: nothing is left from which anything could be recovered")
	}
	if i := slices.IndexFunc(s.states, func(x *store.State) bool { return x.Failing != "" }); i >= 0 {
		return store.Inputf("no node that can be read has a manifest that counts; %s cannot be read: %s", s.name(i), s.states[i].Failing)
	}
	return store.Inputf("the group is not protected: no node has a manifest that counts")
}

// unreadRecords returns which records, and manifests that say where they are, the disks do not give, and why.
func (s *session) unreadRecords() (list []string) {
	for n, x := range s.states {
		if h := x.Of(s.Current); h != nil {
			for _, text := range h.Unread {
				list = append(list, fmt.Sprintf("%s: %s", s.name(n), text))
			}
			continue
		}
		for _, u := range x.Unknown {
			if u.Failed {
				list = append(list, fmt.Sprintf("%s: the manifest (%s)", s.name(n), u.Why))
			}
		}
	}
	return list
}

// loss returns an error for which nodes in some condition do not come back, as a [lostError] where that is for certain:
// more nodes are lost than may be, or everything could be read, and is not there.
func (s *session) loss(conditions []*content.Condition, err error) error {
	lost, unread := 0, false
	for n, c := range conditions {
		if c.Lost && c.Failing == "" {
			lost++
			continue
		}
		x := s.states[n]
		unread = unread || c.Foreign || c.Failing != "" || x.Of(s.Current) == nil && x.Bad != nil // as nobody knows what else it has
		unread = unread || slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Why != "" })
	}
	if s.passed == nil || unread && lost <= s.manifest.Tolerate {
		return err
	}
	return &lostError{*s.taken, s.Root, err}
}

// notes tells what is the matter with files of Volley's, and what runs have left behind.
func (s *session) notes() []string {
	var list []string
	for _, x := range s.states {
		if x.Failing != "" {
			how := "read"
			if x.Unreachable {
				how = "reached"
			}
			list = append(list, fmt.Sprintf("%s cannot be %s: %s. To recover its data elsewhere, give another, empty directory in its place", x.Dir, how, x.Failing))
		}
		if x.Open {
			list = append(list, fmt.Sprintf("%s can be read by others, who learn from parity what is in the files of other nodes: protect and recover make it private where they are run by its owner", tree.JoinPath(x.Dir, tree.MetaName)))
		}
		list = append(list, x.Bad...)
		left := slices.Clone(x.Left)
		for _, h := range x.Held {
			switch {
			case h.Generation < s.Generation && x.Of(s.Current) == nil:
				list = append(list, fmt.Sprintf("%s has generation %d, and the group is at generation %d", x.Dir, h.Generation, s.Generation))
			case !h.Committed && (h.Generation != s.Generation || h.Root != s.Root):
				left = append(left, store.PendingDir(h.Generation))
			}
		}
		if left != nil {
			list = append(list, fmt.Sprintf("%s: an interrupted run has left %s in its %s, which the next protect or recover removes", x.Dir, strings.Join(left, ", "), tree.MetaName))
		}
	}
	return list
}

// holder returns the holder of locks that this rank is.
func (s *session) holder(v verb) disk.Holder {
	h := disk.HolderOf(v.name, s.run)
	h.Rank = s.t.Rank()
	return h
}

// ending reports whether an earlier Unprotect had marked all nodes that have a manifest.
func (s *session) ending() bool {
	marked := func(x *store.State) bool { return slices.Contains(x.Left, store.EndingName) }
	return slices.ContainsFunc(s.states, marked) && !slices.ContainsFunc(s.states, func(x *store.State) bool { return len(x.Held) > 0 && !marked(x) })
}
