// Package session is a run of a verb at the ranks of a group: they meet, lock their nodes, tell each other what these
// hold, and find out what is in force. Records and manifests go from node to node here.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"volley"
	"volley/collective"
	"volley/executor"
	"volley/files"
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/judge"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/sim"
	"volley/transport"
	"volley/verify"
)

// A Verb is what ranks do together.
type Verb struct {
	Name string
	Args any // its own options, on which all ranks agree as on Options, as far as JSON has them; nil: it has none
	store.Access
	Ends   bool                                  // the protection: it goes on where an earlier run has begun to
	Forced bool                                  // and where nodes contradict each other about what is in force
	Added  []string                              // directories here that are new in the group
	Order  ordering                              // of all directories, where one process has them; nil: that which they say
	Pick   func(context.Context, *Session) error // of roots, the snapshot that the nodes are
	Passed map[int64]*LostError                  // snapshots that turned out to be lost; nil: there is no other to take
}

// An ordering returns which of some directories is the first, the next and so on, by what they say and which are new.
type ordering func(names []string, ids []protection.Identity, added []bool) ([]int, error)

// A Session is a run of a verb at one rank.
type Session struct {
	Setup
	T      transport.Transport
	Verb   Verb
	K      int // nodes of the group
	Nodes  []*store.Node
	listed []*store.Node  // the same in the order of their directories
	States []*store.State // of all nodes
	store.Current
	Seed        verify.Seed               // of the checks of this run
	Run         string                    // its name
	Manifest    *store.Manifest           // in force; nil: the group is not protected
	Text        []byte                    // of it, as stored
	RecordOf    map[int]*store.Record     // of the nodes here
	LostRecords []int                     // nodes whose records no node has any more
	Records     map[int]map[string][]byte // record files that nodes here lack, by name
	adopt       bool                      // what was made without a key gets one
	Taken       *int64                    // the snapshot that the nodes are; nil: none
	Agreed      bool                      // all ranks find the error
}

// Terms are what ranks begin with.
type Terms struct {
	Nodes   int         // there
	Run     string      // its name, rank 0's
	Seed    verify.Seed // rank 0's
	MAC     string      // of that name, which tells whether another rank has another key
	Network sim.Network
}

// Meeting calls f with a session, and tells the other ranks of an error.
func Meeting[T any](ctx context.Context, t transport.Transport, o Setup, f func(*Session) (T, error)) (result T, err error) {
	s := &Session{Setup: o, T: t}
	defer s.close()
	result, err = f(s)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && !errors.As(err, new(*transport.AbortError)) && !errors.As(err, new(*LostError)) && !errors.As(err, new(*SeatsError)) {
		t.Abort(err)
	}
	return result, err
}

// Look takes the directories of the nodes at this rank, locks them, and looks what all nodes hold.
func (s *Session) Look(ctx context.Context, dirs []string, v Verb) error {
	err := s.Meet(ctx, len(dirs), v)
	if err == nil {
		err = s.placeAndLock(ctx, dirs)
	}
	if err != nil {
		return err
	}
	if s.States, err = Collect(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*store.State, error) {
		return n.Load(s.Key, s.K), ctx.Err()
	}); err != nil {
		return err
	}
	for _, x := range s.States {
		if x.ReadOnly != "" && v.Writes && !v.Makes {
			return s.SharedError(ctx, fmt.Errorf("%s cannot be written to: %s", x.Dir, x.ReadOnly))
		}
		x.Node = x.NumberAmong(s.K)
		if x.UnknownVersion > 0 {
			return s.SharedError(ctx, store.Inputf("%s has a manifest of version %d, and this program knows version %d: recover the group with the release that protected it. To protect it anew with this one, move %s away; if the directory is not to be trusted, give an empty one in its place", x.Dir, x.UnknownVersion, store.Version, s.MetaText("the %s of every node")))
		}
	}
	for _, n := range s.Nodes { // all have their locks, and nothing is written yet
		if n.Unlock == nil || !v.Writes || n.ReadOnly != "" { // its lock says who had it when it could be written to
			continue
		}
		err := disk.Confirm(n.Dir, store.MetaPath(store.LockFile), s.Holder())
		if errors.As(err, new(*files.SharedError)) {
			err = &protection.RefusedError{Err: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// placeAndLock places the nodes here, and locks them. It starts again where another run has placed them otherwise meanwhile.
func (s *Session) placeAndLock(ctx context.Context, dirs []string) error {
	for try := 1; ; try++ {
		placed, err := s.Place(dirs)
		if err == nil && s.Roots {
			err = s.Verb.Pick(ctx, s)
		}
		if err == nil {
			err = s.open(ctx)
		}
		if err != nil {
			return err
		}
		order, err := s.order()
		if err != nil || slices.Equal(order, placed) || try == mostTries {
			return err
		}
		s.close()
		s.Taken = nil
	}
}

// close gives back the nodes here. The first may have made what is above those of the others.
func (s *Session) close() {
	for _, n := range slices.Backward(s.Nodes) {
		n.Close()
	}
}

// Find finds out which generation is in force, and gets its manifest and records.
func (s *Session) Find(ctx context.Context) error {
	for try := 1; ; try++ {
		err := s.findOnce(ctx)
		if err == nil || !s.Agreed {
			return err
		}
		if moved, failed := s.Again(ctx, try); failed != nil || !moved {
			return err // that of nodes at rest
		}
	}
}

// Again reports whether nodes that are read beside another run hold something else than they did: what was said of them
// may never have been so. It has looked at them again then, after a while. After some tries it gives up.
func (s *Session) Again(ctx context.Context, try int) (moved bool, err error) {
	if !slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Writer != nil }) {
		return false, nil
	}
	type look struct {
		Moved bool
		State *store.State
	}
	looks, err := Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (look, error) {
		x := s.States[n.Index]
		if x.Writer == nil || !n.Moved(s.Holder()) {
			return look{State: x}, nil
		}
		time.Sleep(time.Duration(min(try, 10)) * restless)
		n.Moved(s.Holder()) // from here on it is to stay
		return look{true, n.Load(s.Key, s.K)}, nil
	})
	for n, x := range looks {
		moved = moved || x.Moved
		s.States[n], s.States[n].Node = x.State, x.State.NumberAmong(s.K)
	}
	if moved && try >= mostTries {
		return false, fmt.Errorf("another run changes what is in force all the time: run again when it has ended")
	}
	if s.Agreed = false; moved {
		s.Manifest, s.Text, s.LostRecords = nil, nil, nil
	}
	return moved, err
}

// A commit renames some directories at each node, and waits for the others in between.
const (
	mostTries = 20
	restless  = 20 * time.Millisecond
)

// findOnce is Find, once.
func (s *Session) findOnce(ctx context.Context) (err error) {
	v := &s.Verb
	s.Current, s.adopt, err = judge.InForce(s.States, s.Trust(), v.Name == "protect")
	switch unclear := errors.As(err, new(*protection.UnclearError)); {
	case err != nil && v.Ends && (s.Ending() || unclear && v.Forced):
		s.Current = store.Current{}
	case v.Ends && unclear:
		return s.SharedError(ctx, &protection.RefusedError{Option: protection.OptionGiveUp, Err: err})
	case err != nil:
		return s.SharedError(ctx, err)
	}
	s.Log.DebugContext(ctx, "found the group", "nodes", s.K, "generation", s.Generation)
	if s.Generation == 0 {
		return nil
	}
	if err := s.Fetch(ctx); err != nil || s.Meta == "" {
		return err
	}
	return s.checkNames(ctx)
}

// checkNames returns an error where a directory has another name than its node had: nothing in it says which it is.
func (s *Session) checkNames(ctx context.Context) error {
	for n, x := range s.States {
		if s.Manifest.Names == nil || s.Manifest.Names[n] == x.Name {
			continue
		}
		if index := slices.Index(s.Manifest.Names, x.Name); index >= 0 {
			return s.SharedError(ctx, store.Inputf("%s was node %d of the group and was given as node %d: give the directories in the order in which they were protected", x.Dir, index, n))
		}
		return s.SharedError(ctx, store.Inputf("%s has what belongs to %s, and %s was given: give the directory that was protected, mount a snapshot where the last one was, or, for another group, name another directory than %s", x.Path(tree.MetaName), printable.Text(string(s.Manifest.Names[n])), x.Dir, s.Meta))
	}
	return nil
}

// Meet agrees with the other ranks on what they do, and on how many nodes each has.
func (s *Session) Meet(ctx context.Context, nodes int, v Verb) error {
	s.Setup, s.Verb = Defaulted(s.Setup), v
	terms, err := s.OptionTerms(v)
	if err != nil {
		return store.Inputf("the options of %s: %w", v.Name, err)
	}
	if err := volley.Greet(ctx, s.T, v.Name, s.Timeout, terms...); err != nil {
		return err
	}
	switch {
	case s.Meta != "" && s.Roots:
		return store.Inputf("the protection of a snapshot lies in the snapshot, and cannot lie in %s: name no directory for it", s.Meta)
	case len(s.Key) > 0 && s.NoKey:
		return store.Inputf("there are both a key and NoKey: give one of them")
	case len(s.Key) > 0:
		if err := checkKey(s.Key); err != nil {
			return err
		}
	}
	mine := Terms{Nodes: nodes, Run: rand.Text(), Network: s.Network}
	rand.Read(mine.Seed[:])
	mine.MAC = store.MacOf(s.Key, store.OfRun, []byte(mine.Run))
	ranks, err := collective.AllgatherValues(ctx, s.T, mine, s.Timeout)
	if err != nil {
		return err
	}
	for r, x := range ranks {
		if x.Nodes < 0 || x.Nodes > store.MostNodes {
			return s.SharedError(ctx, store.Inputf("rank %d says that it has %d nodes: a group has at most %d", r, x.Nodes, store.MostNodes))
		}
		s.K += x.Nodes
		if !store.SameMAC(x.MAC, store.MacOf(s.Key, store.OfRun, []byte(x.Run))) {
			return s.SharedError(ctx, store.Inputf("process %d was started with another key than process %d, or one of them without: give all the same", r, s.T.Rank()))
		}
	}
	s.Run, s.Seed, s.Network = ranks[0].Run, ranks[0].Seed, ranks[0].Network // all have to choose alike
	if err := s.Network.Validate(); err != nil {
		return s.SharedError(ctx, store.Inputf("the network of process 0 cannot be: %w", err))
	}
	if s.K < 2 && (v.Needs || !s.Roots) || s.K < s.T.Size() {
		return s.SharedError(ctx, store.Inputf("need at least %d directories, got %d: name those of all nodes, one or more for each process", max(2, s.T.Size()), s.K))
	}
	for r, x := range ranks {
		if first, end := executor.Hosted(s.K, r, s.T.Size()); x.Nodes != end-first {
			return s.SharedError(ctx, store.Inputf("process %d has %d of %d directories: give every process the same number", r, x.Nodes, s.K))
		}
	}
	return nil
}

// OptionTerms returns what ranks have to agree on: the options that JSON has.
func (s *Session) OptionTerms(v Verb) (list []collective.Term, err error) {
	var values map[string]json.RawMessage
	for _, options := range []any{v.Args, s.Settings} {
		text, err := json.Marshal(options)
		if err == nil {
			err = json.Unmarshal(text, &values) // adds to what is there
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, collective.Term{Name: wordsOf(name), Value: string(values[name])})
	}
	return list, nil
}

// wordsOf returns the words in the name of an option, which flags, C and Python write in ways of their own.
func wordsOf(name string) string {
	var words []string
	for _, r := range name {
		if unicode.IsUpper(r) || words == nil {
			words = append(words, "")
		}
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	return strings.Join(words, " ")
}

// nodesAt returns the nodes of directories, as they are given, from the number first on.
func nodesAt(o *protection.Settings, dirs []string, first int) ([]*store.Node, error) {
	for _, option := range []struct {
		label string
		list  []string
	}{{"names", o.Names}, {"reasons of absence", o.Absent}} {
		if option.list != nil && len(option.list) != len(dirs) {
			return nil, store.Inputf("%d %s for %d directories: give one for each, or none at all", len(option.list), option.label, len(dirs))
		}
	}
	nodes := make([]*store.Node, len(dirs))
	for i, dir := range dirs {
		n := &store.Node{Index: first + i, DirPath: dir, DirName: dir, Name: tree.WholePath(dir)}
		if o.Names != nil {
			n.DirName, n.Name = o.Names[i], tree.Name(o.Names[i])
		}
		if o.Absent != nil {
			n.Absent = o.Absent[i]
		}
		switch {
		case o.Meta != "":
			n.Meta = filepath.Join(o.Meta, fmt.Sprint("node.", n.Index))
		case o.Roots:
			n.Root, n.RootName = n.DirPath, n.DirName
		}
		nodes[i] = n
	}
	return nodes, nil
}

// Place makes the nodes of the directories here, and returns their order.
func (s *Session) Place(dirs []string) (order []int, err error) {
	first, _ := executor.Hosted(s.K, s.T.Rank(), s.T.Size())
	if s.listed, err = nodesAt(&s.Settings, dirs, first); err != nil {
		return nil, err
	}
	for _, n := range s.listed {
		n.Added = slices.Contains(s.Verb.Added, n.DirName)
	}
	s.Nodes = slices.Clone(s.listed)
	order, err = s.order()
	for n, i := range order {
		s.Nodes[n] = s.listed[i]
		s.Nodes[n].Index = n
	}
	return order, err
}

// order returns which of the directories here is the first node, the next and so on, by what they say now. Those of
// several ranks, and seats, are in order: it is nil.
func (s *Session) order() ([]int, error) {
	if s.T.Size() > 1 || s.Seated {
		return nil, nil
	}
	names, ids, added := make([]string, s.K), make([]protection.Identity, s.K), make([]bool, s.K)
	for i, n := range s.listed {
		switch {
		case s.Meta != "":
			ids[i] = protection.Identity{Node: i}
		case s.Roots:
			ids[i] = IdentifyRoot(s.Disk, n.Root)
		default:
			ids[i] = store.Identify(s.Disk, n.DirPath)
		}
		ids[i].Name = n.Name
		names[i], added[i] = n.DirName, n.Added
	}
	if s.Verb.Order != nil {
		return s.Verb.Order(names, ids, added)
	}
	return Order(ids), nil
}

// open opens and locks the nodes here, node 0 first: it decides between two runs.
func (s *Session) open(ctx context.Context) error {
	if err := s.Apart(); err != nil {
		return err
	}
	for _, first := range []bool{true, false} {
		for _, n := range s.Nodes {
			if (n.Index == 0) != first {
				continue
			}
			if err := s.openNode(ctx, n); err != nil {
				return err
			}
		}
		if first {
			if err := s.Barrier(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// openNode opens and locks a node, or notes why it cannot be read.
func (s *Session) openNode(ctx context.Context, n *store.Node) error {
	if n.Failing = n.Absent; n.Failing != "" {
		return nil
	}
	if n.Dir == nil { // else it has its lock already
		err := n.Open(s.Disk, s.Verb.Access, s.Holder())
		if errors.As(err, new(*files.BusyError)) || IsInputError(err) {
			return err
		}
		if err != nil {
			n.Failing = err.Error()
			n.Close()
		}
	}
	if n.Dir != nil && s.ReadRate > 0 {
		n.Dir = disk.Paced(ctx, n.Dir, s.ReadRate)
	}
	return nil
}

// Name returns what to call a node: its directory, with its number where others are called the same.
func (s *Session) Name(n int) string {
	dir := s.States[n].Dir
	for i, x := range s.States {
		if i != n && x.Dir == dir {
			return fmt.Sprintf("%s (node %d)", dir, n)
		}
	}
	return dir
}

// EachLocal calls f for all nodes at this rank, on all cores or in turn, and returns the error of the first that has one.
func (s *Session) EachLocal(f func(i int, n *store.Node) error) error {
	if len(s.Nodes) == 1 {
		return f(0, s.Nodes[0])
	}
	errs := make([]error, len(s.Nodes))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	if s.InTurn {
		workers.SetLimit(1)
	}
	for i, n := range s.Nodes {
		workers.Go(func() error { errs[i] = f(i, n); return nil })
	}
	workers.Wait()
	return cmp.Or(errs...)
}

// EachSteady calls f for all nodes at this rank, as EachLocal does, while the others wait.
func (s *Session) EachSteady(ctx context.Context, f func(ctx context.Context, i int, n *store.Node) error) error {
	return s.Steady(ctx, func(ctx context.Context) error {
		return s.EachLocal(func(i int, n *store.Node) error { return f(ctx, i, n) })
	})
}

// Setting is what plans of this run are chosen and run for.
func (s *Session) Setting() *erasure.Environment {
	return &erasure.Environment{Memory: s.Memory, Timeout: s.Timeout, Network: s.Network, T: s.T}
}

// Steady does what takes long at one rank, while the others wait.
func (s *Session) Steady(ctx context.Context, f func(context.Context) error) error {
	return collective.Steady(ctx, s.T, s.Timeout, f)
}

// Exchange gives what every node has to say to all of them, in order.
func Exchange[T any](ctx context.Context, s *Session, mine []T) ([]T, error) {
	lists, err := collective.AllgatherValues(ctx, s.T, mine, s.Timeout)
	return byNode(s, lists, err)
}

// Collect calls f for all nodes at this rank, as EachSteady does, and gives all ranks what it returns of every node, in order.
func Collect[T any](ctx context.Context, s *Session, f func(ctx context.Context, i int, n *store.Node) (T, error)) ([]T, error) {
	lists, err := collective.SteadyValues(ctx, s.T, s.Timeout, func(ctx context.Context) ([]T, error) {
		mine := make([]T, len(s.Nodes))
		return mine, s.EachLocal(func(i int, n *store.Node) (err error) {
			mine[i], err = f(ctx, i, n)
			return err
		})
	})
	return byNode(s, lists, err)
}

// byNode returns what ranks say of their nodes, in order.
func byNode[T any](s *Session, lists [][]T, err error) ([]T, error) {
	for r, list := range lists {
		first, end := executor.Hosted(s.K, r, s.T.Size())
		if len(list) != end-first || slices.ContainsFunc(list, func(x T) bool { v := reflect.ValueOf(x); return v.Kind() == reflect.Pointer && v.IsNil() }) {
			return nil, fmt.Errorf("rank %d says %d things of its %d nodes, or nothing of one", r, len(list), end-first)
		}
	}
	return slices.Concat(lists...), err
}

// Steadied returns an error where a node that could not be locked has changed since it was listed.
func (s *Session) Steadied(ctx context.Context, conditions []*content.Condition) error {
	if !slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Unlocked }) {
		return nil
	}
	return s.EachSteady(ctx, func(_ context.Context, _ int, n *store.Node) error {
		earlier := conditions[n.Index].Listing
		if !s.States[n.Index].Unlocked || earlier == nil {
			return nil
		}
		current, err := tree.Scan(n.Dir, false, s.Manifest.Rules())
		if err != nil {
			return err
		}
		unchanged := slices.EqualFunc(earlier.Entries, current.Entries, func(a, b *tree.Entry) bool {
			return a.Path == b.Path && a.Touch == b.Touch && a.Size == b.Size
		})
		if h := s.States[n.Index].Holding(s.Current); h != nil && unchanged {
			text, err := disk.SumText(n.Dir, n.Generation(s.Generation).Path(store.ManifestFile), store.MostManifest)
			unchanged = err == nil && text == s.Root
		}
		if !unchanged {
			return fmt.Errorf("%s has changed meanwhile, and could not be locked: run again when nothing else uses it", n.DirName)
		}
		return nil
	})
}

// RankOf returns the rank that has a node.
func (s *Session) RankOf(node int) int { return executor.RankOf(node, s.K, s.T.Size()) }

// Barrier returns when all ranks have come to it.
func (s *Session) Barrier(ctx context.Context) error {
	return collective.Barrier(ctx, s.T, s.Timeout)
}

// SharedError returns an error that all ranks find, once all have come to it, so that each returns its own.
func (s *Session) SharedError(ctx context.Context, err error) error {
	s.Agreed = true
	return collective.New(s.T, s.Timeout).SharedError(ctx, err)
}

// Complete returns an error where a node lacks what it had: to protect the rest would make the loss for good.
func (s *Session) Complete(force bool) error {
	if err := s.unreached(); err != nil {
		return err
	}
	for n, x := range s.States {
		if x.Failing != "" {
			return fmt.Errorf("%s cannot be read: %s", s.Name(n), x.Failing)
		}
	}
	if s.Generation == 0 || force {
		return nil
	}
	for n, x := range s.States {
		if x.Holding(s.Current) == nil && !x.Added {
			return &protection.RefusedError{Option: protection.OptionForce, Err: fmt.Errorf("%s is missing what was protected: recover it first", s.Name(n))}
		}
		if x.Interrupted() { // directories may not have their modes and times
			return &protection.RefusedError{Option: protection.OptionForce, Err: fmt.Errorf("a recovery of %s has not ended: recover it first", s.Name(n))}
		}
	}
	return nil
}

// unreached returns an error where nodes cannot be reached.
func (s *Session) unreached() error {
	e := new(protection.UnreachableError)
	for n, x := range s.States {
		if h := x.Holding(s.Current); h != nil && s.Generation > 0 && e.Since.IsZero() {
			e.Since = h.Since
		}
		if x.Unreachable && x.Failing != "" {
			e.Nodes, e.Reason = append(e.Nodes, s.Name(n)), cmp.Or(e.Reason, x.Failing)
		}
	}
	if e.Nodes == nil {
		return nil
	}
	return e
}

// Unprotected returns the error of a group that has no generation in force.
func (s *Session) Unprotected() error {
	reason := s.WhyUnprotected()
	if reason == s.noManifest() {
		reason = "the group is not protected: " + reason
	}
	err := store.Inputf("%s", reason)
	named := s.Roots && s.Step != Latest // there may be other snapshots
	if named || slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Failing != "" || x.Numbers != nil || x.Bad != nil }) {
		return err
	}
	return &protection.NoneError{Err: err}
}

func (s *Session) noManifest() string {
	return "no node has a valid manifest in " + s.MetaText("its %s")
}

// MetaText says where everything of Volley's lies at nodes: in one directory, or in what each has.
func (s *Session) MetaText(format string) string {
	return cmp.Or(s.Meta, fmt.Sprintf(format, tree.MetaName))
}

// WhyUnprotected says why no generation is in force.
func (s *Session) WhyUnprotected() string {
	if !slices.ContainsFunc(s.States, func(x *store.State) bool { return !x.Lost }) {
		return "all nodes are lost: nothing is left from which anything could be recovered"
	}
	if i := slices.IndexFunc(s.States, func(x *store.State) bool { return x.Failing != "" }); i >= 0 {
		return fmt.Sprintf("nothing says that the group is protected, and %s cannot be read: %s", s.Name(i), s.States[i].Failing)
	}
	return s.noManifest()
}

// UnreadRecords returns which records, and manifests that say where they are, the disks do not give, and why.
func (s *Session) UnreadRecords() (list []string) {
	for n, x := range s.States {
		if h := x.Holding(s.Current); h != nil {
			for _, text := range h.Unread {
				list = append(list, fmt.Sprintf("%s: %s", s.Name(n), text))
			}
			continue
		}
		for _, u := range x.Unknown {
			if u.Failed {
				list = append(list, fmt.Sprintf("%s: the manifest (%s)", s.Name(n), u.Reason))
			}
		}
	}
	return list
}

// ElsewhereAdvice is what to do where a node cannot be read, and may never be again.
const ElsewhereAdvice = "To recover its data elsewhere, give another, empty directory in its place"

// Notes tells what is the matter with files of Volley's, and, where this run only looks, what runs have left behind.
func (s *Session) Notes() []string {
	var list []string
	for _, x := range s.States {
		if x.Failing != "" {
			text := fmt.Sprintf("read: %s. %s", x.Failing, ElsewhereAdvice)
			if x.Unreachable { // it may be there, and whoever says so knows more
				text = "reached: " + x.Failing
			}
			list = append(list, fmt.Sprintf("%s cannot be %s", x.Dir, text))
		}
		if x.Writer != nil {
			list = append(list, fmt.Sprintf("%s was read beside another run: %v. What is said of it may be otherwise when that has ended", x.Dir, x.Writer.Holder))
		}
		if x.Open {
			list = append(list, fmt.Sprintf("%s can be read by others, who learn from parity what is in the files of other nodes: protect and recover make it private where they are run by its owner", x.Path(tree.MetaName)))
		}
		list = append(list, x.Bad...)
		for _, h := range x.Held {
			if s.behind(x, h) {
				list = append(list, fmt.Sprintf("%s has generation %d, and the group is at generation %d", x.Dir, h.Generation, s.Generation))
			}
		}
	}
	if s.Verb.Writes { // it removes them
		return list
	}
	return append(list, s.Leftovers(func(int, string) bool { return false })...)
}

// behind reports whether a node holds a generation in place of the one in force.
func (s *Session) behind(x *store.State, h store.Held) bool {
	return h.Generation < s.Generation && x.Holding(s.Current) == nil
}

// Leftovers tells what interrupted runs have left behind at nodes, but for what this run removes.
func (s *Session) Leftovers(removes func(n int, name string) bool) (list []string) {
	for n, x := range s.States {
		names := slices.Clone(x.Leftovers)
		for _, h := range x.Held {
			if !h.Committed && (h.Generation != s.Generation || h.Root != s.Root) && !s.behind(x, h) {
				names = append(names, store.PendingDir(h.Generation))
			}
		}
		names = slices.DeleteFunc(names, func(name string) bool { return removes(n, name) })
		if len(names) > 0 && x.Writer == nil { // else it is of the other run
			list = append(list, fmt.Sprintf("%s: an interrupted run has left %s in %s, which the next protect or recover removes", x.Dir, strings.Join(names, ", "), x.Path(tree.MetaName)))
		}
	}
	return list
}

// Holder returns the holder of locks that this rank is.
func (s *Session) Holder() files.Holder {
	h := disk.HolderOf(s.Verb.Name, s.Run)
	h.Rank, h.Origin = s.T.Rank(), s.Origin
	return h
}

// Ending reports whether an earlier Unprotect had marked all nodes that have a manifest.
func (s *Session) Ending() bool {
	marked := func(x *store.State) bool { return slices.Contains(x.Leftovers, store.EndingName) }
	return slices.ContainsFunc(s.States, marked) && !slices.ContainsFunc(s.States, func(x *store.State) bool { return len(x.Held) > 0 && !marked(x) })
}
