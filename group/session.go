package group

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"

	"volley"
	"volley/collective"
	"volley/executor"
	"volley/internal/disk"
	"volley/transport"
)

// A verb is what ranks do together.
type verb struct {
	name   string
	args   string // other arguments on which all ranks agree
	writes bool   // it takes locks that nobody shares
	makes  bool   // directories that are missing
	needs  bool   // all directories
}

// A session is a run of a verb at one rank.
type session struct {
	Options
	t      transport.Transport
	k      int // nodes of the group
	nodes  []*node
	states []*state // of all nodes
	current
	manifest *Manifest              // in force; nil: the group is not protected
	text     []byte                 // of it, as stored
	members  map[int]*Member        // of the nodes here
	gone     []int                  // nodes whose records no node has any more
	records  map[int]map[int][]byte // of nodes here that lack some: all that they store
	out      map[int]bool           // nodes that are recovered elsewhere; nil: each where it is
	adopt    bool                   // what was made without a key gets one
}

// terms are what ranks begin with.
type terms struct {
	Nodes   int    // there
	What    string // they are to do
	Run     string // its name, rank 0's
	MAC     string // of that name, which tells whether another rank has another key
	Options Options
}

// run does a verb's work on a session, and tells the other ranks of an error.
func run[T any](ctx context.Context, t transport.Transport, dirs []string, o Options, v verb, f func(context.Context, *session) (T, error)) (result T, err error) {
	s := &session{Options: o, t: t}
	defer s.end()
	if err = s.begin(ctx, dirs, v); err == nil {
		result, err = f(ctx, s)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && !errors.As(err, new(*transport.AbortError)) {
		t.Abort(err)
	}
	return result, err
}

// begin takes the directories of the nodes at this rank, locks them, and finds out what all
// nodes hold.
func (s *session) begin(ctx context.Context, dirs []string, v verb) error {
	s.defaults()
	if err := volley.Greet(ctx, s.t, v.name, s.Timeout); err != nil {
		return err
	}
	what := v.name + " " + v.args
	switch {
	case len(s.Key) > 0 && s.NoKey:
		return inputf("there are both a key and NoKey: give one of them")
	case len(s.Key) > 0:
		if err := checkKey(s.Key); err != nil {
			return err
		}
	}
	mine := terms{Nodes: len(dirs), What: what, Run: rand.Text(), Options: s.Options}
	mine.MAC = macOf(s.Key, ofRun, []byte(mine.Run))
	mine.Options.Key = nil // which is nobody's but the caller's
	ranks, err := collective.AllgatherValues(ctx, s.t, mine, s.Timeout)
	if err != nil {
		return err
	}
	for r, x := range ranks {
		if x.Nodes < 0 || x.Nodes > mostNodes {
			return s.alike(ctx, inputf("rank %d says that it has %d nodes: a group has at most %d", r, x.Nodes, mostNodes))
		}
		s.k += x.Nodes
		if !sameMAC(x.MAC, macOf(s.Key, ofRun, []byte(x.Run))) {
			return s.alike(ctx, inputf("process %d was started with another key than process %d, or one of them without: give all the same", r, s.t.Rank()))
		}
		a, b := x.Options, ranks[0].Options
		if x.What != ranks[0].What || a.Memory != b.Memory || a.Believe != b.Believe || a.NoKey != b.NoKey || !slices.Equal(a.Members, b.Members) {
			return s.alike(ctx, inputf("process %d was started with other arguments than process 0: %q, %q: start all with the same", r, x.What, ranks[0].What))
		}
	}
	s.Network, s.Gamma = ranks[0].Options.Network, ranks[0].Options.Gamma // all have to choose alike
	if err := cmp.Or(s.Network.Validate(), s.Gamma.Validate()); err != nil {
		return s.alike(ctx, inputf("the network or γ of process 0 cannot be: %w", err))
	}
	if s.k < 2 || s.k < s.t.Size() {
		return s.alike(ctx, inputf("need at least %d directories, got %d: name those of all nodes, one or more for each process", max(2, s.t.Size()), s.k))
	}
	for r, x := range ranks {
		if first, end := executor.Hosted(s.k, r, s.t.Size()); x.Nodes != end-first {
			return s.alike(ctx, inputf("process %d has %d of %d directories: give every process the same number", r, x.Nodes, s.k))
		}
	}
	s.place(dirs)
	holder := disk.HolderOf(v.name, ranks[0].Run)
	holder.Rank = s.t.Rank()
	failing, err := s.open(ctx, v, holder)
	if err != nil {
		return err
	}
	loaded := make([]*state, len(s.nodes))
	if err := s.each(ctx, func(ctx context.Context, i int, n *node) error {
		if loaded[i] = (&state{Dir: n.given, Node: -1, Failing: failing[i]}); failing[i] == "" {
			loaded[i] = n.load(s.k, s.Key)
		}
		return ctx.Err()
	}); err != nil {
		return err
	}
	if s.states, err = exchange(ctx, s, loaded); err != nil {
		return err
	}
	for _, x := range s.states {
		if x.Other > 0 {
			return s.alike(ctx, inputf("%s has a manifest of version %d, and this program knows versions 2 and %d: recover the group with the release that protected it. To protect it anew with this one, move the %s of every node away; if the directory is not to be trusted, give an empty one in its place", x.Dir, x.Other, Version, metaName))
		}
	}
	for _, n := range s.nodes { // all have their locks, and nothing is written yet
		if n.unlock == nil || !v.writes {
			continue
		}
		err := disk.Confirm(n.dir, metaPath(lockFile), holder)
		if shared := new(disk.SharedError); errors.As(err, &shared) {
			err = &InputError{error: err}
		}
		if err != nil {
			return err
		}
	}
	if s.current, s.adopt, err = inForce(s.states, &s.Options, v.name == "protect"); err != nil {
		return s.alike(ctx, err)
	}
	if s.generation == 0 {
		return nil
	}
	return s.fetch(ctx)
}

// place makes the nodes of the directories here, in the order in which they say that they are.
// Those at other ranks are in order: see Order.
func (s *session) place(dirs []string) {
	first, _ := executor.Hosted(s.k, s.t.Rank(), s.t.Size())
	ids := make([]Identity, len(dirs))
	for i, dir := range dirs {
		n := &node{index: first + i, at: dir, given: dir}
		if s.Names != nil {
			n.given = s.Names[i]
		}
		if s.Absent != nil {
			n.absent = s.Absent[i]
		}
		s.nodes = append(s.nodes, n)
		ids[i] = identify(s.disk, dir)
	}
	if s.t.Size() > 1 {
		return
	}
	given := slices.Clone(s.nodes)
	for place, i := range Order(ids) {
		s.nodes[place] = given[i]
		s.nodes[place].index = place
	}
}

// open opens and locks the nodes here, member 0 before all others: of two runs at once that
// write, the one that has it wins. It returns why nodes cannot be read.
func (s *session) open(ctx context.Context, v verb, holder disk.Holder) ([]string, error) {
	failing := make([]string, len(s.nodes))
	open := func(i int) error {
		n := s.nodes[i]
		if failing[i] = n.absent; n.absent != "" {
			return nil
		}
		err := n.open(s.disk, v, holder)
		busy := new(disk.BusyError)
		switch {
		case errors.As(err, &busy) && busy.Holder.Run == holder.Run:
			if err := apart(s.nodes); err != nil { // both are here
				return err
			}
			return &InputError{error: &disk.SharedError{Path: n.dir.Path(), Ranks: [2]int{min(holder.Rank, busy.Holder.Rank), max(holder.Rank, busy.Holder.Rank)}}}
		case errors.As(err, &busy), IsInputError(err):
			return err
		case err != nil:
			failing[i] = err.Error()
			n.close()
		}
		return nil
	}
	if s.nodes[0].index == 0 {
		if err := open(0); err != nil {
			return nil, err
		}
	}
	if err := s.together(ctx); err != nil {
		return nil, err
	}
	for i, n := range s.nodes {
		if n.index > 0 {
			if err := open(i); err != nil {
				return nil, err
			}
		}
	}
	return failing, apart(s.nodes)
}

// end gives back what the session has.
func (s *session) end() {
	for _, n := range s.nodes {
		n.close()
	}
}

// fetch gets the manifest in force, and the records of the nodes here, from nodes that have
// them.
func (s *session) fetch(ctx context.Context) error {
	from := slices.IndexFunc(s.states, func(x *state) bool { return x.of(s.current) != nil })
	have := map[int]bool{}
	for i, x := range s.states {
		have[i] = x.of(s.current) != nil
	}
	var list []parcel
	for n := range s.k {
		if n != from && !have[n] {
			list = append(list, parcel{from: from, to: n})
		}
	}
	for _, n := range s.nodes {
		if l := n.held[s.generation]; l != nil && have[n.index] && s.manifest == nil {
			s.manifest, s.text = l.manifest, l.text
		}
	}
	if err := s.deliver(ctx, list, func(parcel) ([]byte, error) { return s.text, nil }, func(_ parcel, text []byte) (err error) {
		if disk.Sum(text) != s.root || len(s.Key) > 0 && !s.adopt && !madeWith(s.Key, text) {
			return fmt.Errorf("another manifest than that of generation %d arrived", s.generation)
		}
		if s.manifest == nil {
			s.text = text
			s.manifest, err = DecodeManifest(text)
		}
		return err
	}); err != nil {
		return err
	}
	s.members = map[int]*Member{}
	own := make([][]int, s.k)
	for n := range own {
		own[n] = []int{n}
	}
	return s.fetchRecords(ctx, own, func(p parcel, text []byte) (err error) {
		s.members[p.to], err = s.manifest.decodeMember(text)
		return err
	})
}

// fetchRecords gets records from nodes that have them: by node, those of which nodes it wants.
// Those that no node has are gone.
func (s *session) fetchRecords(ctx context.Context, wanted [][]int, put func(parcel, []byte) error) error {
	var list []parcel
	for n, of := range wanted {
		for _, i := range of {
			copies := s.manifest.copies(i)
			at := slices.IndexFunc(copies, func(at int) bool {
				h := s.states[at].of(s.current)
				return h != nil && slices.Contains(h.Records, i)
			})
			if at >= 0 {
				list = append(list, parcel{copies[at], n, i})
			} else if !slices.Contains(s.gone, i) {
				s.gone = append(s.gone, i)
			}
		}
	}
	return s.deliver(ctx, list, func(p parcel) ([]byte, error) {
		first := s.nodes[0].index
		return s.nodes[p.from-first].record(s.manifest, p.of)
	}, func(p parcel, text []byte) error {
		if disk.Sum(text) != s.manifest.Records[p.of].SHA256 {
			return fmt.Errorf("the record of %s arrived damaged at %s", s.name(p.of), s.name(p.to))
		}
		return put(p, text)
	})
}

// name returns what to call a node: its directory, with its number where others have one of
// the same name, each at its machine.
func (s *session) name(n int) string {
	dir := s.states[n].Dir
	for i, x := range s.states {
		if i != n && x.Dir == dir {
			return fmt.Sprintf("%s (node %d)", dir, n)
		}
	}
	return dir
}

// here calls f for all nodes at this rank, on all cores, and returns the first error.
func (s *session) here(f func(i int, n *node) error) error {
	errs := make([]error, len(s.nodes))
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, n := range s.nodes {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			errs[i] = f(i, n)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls f for all nodes at this rank, as here does, while the others wait.
func (s *session) each(ctx context.Context, f func(ctx context.Context, i int, n *node) error) error {
	return s.steady(ctx, func(ctx context.Context) error {
		return s.here(func(i int, n *node) error { return f(ctx, i, n) })
	})
}

// steady does what takes long at one rank, while the others wait.
func (s *session) steady(ctx context.Context, f func(context.Context) error) error {
	return collective.Steady(ctx, s.t, s.Timeout, f)
}

// exchange gives what every node has to say to all of them, in order.
func exchange[T any](ctx context.Context, s *session, mine []T) ([]T, error) {
	all, err := collective.AllgatherValues(ctx, s.t, mine, s.Timeout)
	for r, list := range all {
		first, end := executor.Hosted(s.k, r, s.t.Size())
		if len(list) != end-first || slices.ContainsFunc(list, func(x T) bool { v := reflect.ValueOf(x); return v.Kind() == reflect.Pointer && v.IsNil() }) {
			return nil, fmt.Errorf("rank %d says %d things of its %d nodes, or nothing of one", r, len(list), end-first)
		}
	}
	return slices.Concat(all...), err
}

// together returns when all ranks have come to it.
func (s *session) together(ctx context.Context) error {
	return collective.Barrier(ctx, s.t, s.Timeout)
}

// alike returns an error that all ranks find in what they know of each other, once all have
// come to it: each is to return its own, and not that another has stopped.
func (s *session) alike(ctx context.Context, err error) error {
	return collective.New(s.t, s.Timeout).Alike(ctx, err)
}

// A parcel goes from a node to another, or to itself.
type parcel struct {
	from, to int
	of       int // node whose record it is
}

// deliver carries parcels, which all ranks know. Get returns those of nodes here, and put
// takes those for nodes here.
func (s *session) deliver(ctx context.Context, list []parcel, get func(parcel) ([]byte, error), put func(parcel, []byte) error) error {
	rank := func(n int) int { return executor.RankOf(n, s.k, s.t.Size()) }
	type outgoing struct {
		parcel
		text []byte
	}
	var mine []outgoing
	lengths := map[string]int{}
	for _, p := range list {
		if rank(p.from) != s.t.Rank() {
			continue
		}
		text, err := get(p)
		if err != nil {
			return err
		}
		if rank(p.to) == s.t.Rank() {
			if err := put(p, text); err != nil {
				return err
			}
			continue
		}
		mine = append(mine, outgoing{p, text})
		lengths[fmt.Sprint(p)] = len(text)
	}
	if s.t.Size() == 1 {
		return nil
	}
	all, err := collective.AllgatherValues(ctx, s.t, lengths, s.Timeout)
	if err != nil {
		return err
	}
	// The messages between two ranks come in the order in which they were sent.
	sending, count := s.t.NewQueue(), 0
	for _, x := range mine {
		for part := range slices.Chunk(x.text, mostParcel) {
			sending.Post(&transport.Transfer{Rank: rank(x.to), Parts: [][]byte{part}})
			count++
		}
	}
	for _, p := range list {
		from := rank(p.from)
		if rank(p.to) != s.t.Rank() || from == s.t.Rank() {
			continue
		}
		length, ok := all[from][fmt.Sprint(p)]
		if !ok || length < 0 || int64(length) > mostDelivered {
			return fmt.Errorf("rank %d announces a record of %d bytes: at most %d are possible", from, length, int64(mostDelivered))
		}
		var text []byte
		for len(text) < length {
			if err := s.wait(ctx, func(ctx context.Context) error {
				part := make([]byte, min(mostParcel, length-len(text)))
				err := transport.Receive(ctx, s.t, from, transport.Tag{}, part)
				text = append(text, part...)
				return err
			}); err != nil {
				return err
			}
		}
		if err := put(p, text); err != nil {
			return err
		}
	}
	for range count {
		if err := s.wait(ctx, func(ctx context.Context) error {
			_, err := sending.Wait(ctx)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// mostParcel is the bytes of a message, and mostDelivered those of a parcel.
const (
	mostParcel    = 4 << 20
	mostDelivered = 1 << 32
)

// wait bounds one wait by the timeout.
func (s *session) wait(ctx context.Context, f func(context.Context) error) error {
	if s.Timeout > 0 {
		late, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("%w: nothing for %v", executor.ErrTimeout, s.Timeout))
		defer cancel()
		ctx = late
	}
	return f(ctx)
}
