package group

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"volley/files"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// TestLatest gives the decision about all snapshots their states, the newest first.
func TestLatest(t *testing.T) {
	t.Parallel()
	busy, broken := &files.BusyError{Path: "/r1"}, errors.New("input/output error")
	list := func(states ...string) (all []Snapshot) {
		for i, state := range states {
			x := Snapshot{Step: int64(len(states) - i), State: state, Reason: "it is " + state}
			if x.Err = broken; state == Busy {
				x.Err = busy
			}
			all = append(all, x)
		}
		return all
	}
	for _, x := range []struct {
		states []string
		takes  string // "": none
		looks  string // what a verb takes that only looks
		wrong  any    // the kind of error where one takes none
		gone   []int64
		stay   int
	}{
		{states: nil, wrong: new(*protection.NoneError)},
		{states: []string{InForce, InForce, Recoverable, Incomplete, Unclear, Busy, Unprotected}, takes: InForce, looks: InForce, gone: []int64{6, 5, 4, 1}, stay: 2},
		{states: []string{Recoverable, InForce}, takes: Recoverable, looks: Recoverable, gone: []int64{1}},
		{states: []string{Unprotected, InForce}, takes: Unprotected, looks: InForce},
		{states: []string{Incomplete, Incomplete, InForce}, takes: InForce, looks: InForce},
		{states: []string{Incomplete, Unclear, InForce}, wrong: new(*NotLostError)},
		{states: []string{Unclear, InForce, InForce}, wrong: new(*NotLostError), gone: []int64{1}},
		{states: []string{InForce, Unclear, InForce, Busy}, takes: InForce, looks: InForce, gone: []int64{2}, stay: 2},
		{states: []string{Incomplete, Busy, InForce}, looks: InForce, wrong: new(*files.BusyError)},
		{states: []string{Incomplete, Incomplete}, wrong: new(*protection.RefusedError)},
		{states: []string{Unprotected}, takes: Unprotected, wrong: new(*protection.NoneError)},
	} {
		all := list(x.states...)
		for want, looks := range map[*string]bool{&x.takes: false, &x.looks: true} {
			i, err := choose(all, looks)
			switch {
			case *want == "" && (err == nil || !errors.As(err, x.wrong)):
				t.Errorf("%q, looks %v: %d, %v: want %T", x.states, looks, i, err, x.wrong)
			case *want != "" && (err != nil || all[i].State != *want):
				t.Errorf("%q, looks %v: %d, %v: want the first that is %s", x.states, looks, i, err, *want)
			}
		}
		gone, stay := surplus(all, int64(len(all))+1, 2)
		if !slices.Equal(gone, x.gone) || len(stay) != x.stay {
			t.Errorf("%q: %d go, %q stay: want %d, and %d", x.states, gone, stay, x.gone, x.stay)
		}
	}
}

// What a node has of a snapshot, and then what it does not say.
const (
	hasNone, hasFiles, hasManifest  = 0, 1, 2
	saysUnread, saysBad, saysLocked = 3, 4, 5
)

// mayHave is what a node may have, by what it says.
var mayHave = [][]int{{hasNone}, {hasFiles}, {hasManifest}, {hasNone, hasFiles, hasManifest}, {hasFiles, hasManifest}, {hasFiles, hasManifest}}

// judged returns a snapshot of a group that may lose r nodes, by what these say.
func judged(says []int, r int) Snapshot {
	f := &surroundings{}
	for n, kind := range says {
		dir := fmt.Sprint("/r", n)
		x := &store.State{Node: -1, Files: true}
		switch kind {
		case hasManifest:
			x = &store.State{Claimed: protection.Place{Node: n, Nodes: len(says)}, Files: true, Group: "g", Held: []store.Held{{
				Generation: 1, Group: "g", Nodes: len(says), Tolerate: r, Root: "root", Committed: true, Complete: true, Records: []int{0, 1},
			}}}
		case saysUnread:
			x = &store.State{Node: -1, Failing: "input/output error"}
		case saysBad:
			x.Bad = []string{dir + "/manifest.1.json: unexpected end"}
		case saysLocked:
			x = &store.State{Node: -1, Busy: &files.BusyError{Path: dir}}
		}
		f.Roots = append(f.Roots, &rootState{Seat: session.Seat{Node: n, Dir: dir}, Steps: map[int64]*store.State{1: x}})
		if kind == hasNone {
			delete(f.Roots[n].Steps, 1)
		}
	}
	if f.assess(&session.Session{}); f.List == nil { // no node has it
		return Snapshot{State: Incomplete}
	}
	return f.List[0]
}

// each calls f with all lists of k numbers that are less than so many.
func each(k, numbers int, f func(list []int)) {
	for i := range int(math.Pow(float64(numbers), float64(k))) {
		var list []int
		for range k {
			list, i = append(list, i%numbers), i/numbers
		}
		f(list)
	}
}

// fits reports whether nodes may have what others say.
func fits(has, says []int) bool {
	for n, kind := range has {
		if !slices.Contains(mayHave[says[n]], kind) {
			return false
		}
	}
	return true
}

// TestLatestAll judges two snapshots for all that up to four nodes may have of each, and say of it. An older one is taken
// only where the newer one is lost, whatever nodes have that do not say what they have. One that is said to come back is not
// lost, whatever that is.
func TestLatestAll(t *testing.T) {
	t.Parallel()
	for k := 2; k <= 4; k++ {
		for r := 1; r < k; r++ {
			truth := map[string]string{} // states, by what nodes have
			each(k, 3, func(has []int) { truth[fmt.Sprint(has)] = judged(has, r).State })
			each(k, len(mayHave), func(says []int) {
				x, lost := judged(says, r), true
				each(k, 3, func(has []int) {
					if !fits(has, says) {
						return
					}
					is, left := truth[fmt.Sprint(has)], k
					for _, kind := range has {
						if kind == hasNone {
							left--
						}
					}
					lost = lost && (is == Incomplete || is == Unclear && left < k-r) // which nobody can tell, nor bring back
					comes := x.State == InForce || x.State == Recoverable
					if comes && (is == Incomplete || is == Unprotected) || x.State == Unprotected && is != Unprotected {
						t.Fatalf("K = %d, R = %d: %v is %s, and may be %v, which is %s", k, r, says, x.State, has, is)
					}
				})
				if x.State == Incomplete && !lost {
					t.Fatalf("K = %d, R = %d: %v is given up, and may come back", k, r, says)
				}
				for _, older := range []string{InForce, Recoverable, Unprotected, Incomplete, Unclear, Busy} {
					i, err := choose([]Snapshot{x, {State: older, Err: errors.New("why")}}, false)
					if err == nil && i == 1 && !lost {
						t.Fatalf("K = %d, R = %d: %v is passed over", k, r, says)
					}
				}
			})
		}
	}
}

// TestSnapshotsMeanwhile has another process protect a snapshot, which may be protected already, at each call of a
// recovery or a look. Whoever succeeds finds the snapshot in force: nothing sets it aside.
func TestSnapshotsMeanwhile(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		again := i%2 == 1
		w := newRoots(t, 3, 1, 1)
		w.ranks = []int{1, 3}[i/2]
		w.save(2)
		if again {
			_, err := w.protectStep(w.Process(), Latest, 0)
			must(t, err)
		}
		for name, verb := range map[string]func(c *roots, p *disktest.Process) error{
			"recover": func(c *roots, p *disktest.Process) error { _, err := c.latest(p); return err },
			"snapshots": func(c *roots, p *disktest.Process) error {
				r, err := c.snapshotsBy(p)
				if err == nil && r.Snapshots[0].State != InForce && r.Snapshots[0].State != Unprotected && r.Snapshots[0].State != Busy {
					err = fmt.Errorf("step-2 is %s: %s", r.Snapshots[0].State, r.Snapshots[0].Reason)
				}
				return err
			},
		} {
			calls := w.Calls(func(p *disktest.Process) {
				c := w.clone()
				c.Machine = nil
				must(t, verb(c, p))
			})
			done, both := 0, 0
			for n := range calls {
				if *mostCalls > 0 && n%(1+2*w.ranks) > 0 {
					continue
				}
				c := w.clone()
				p := c.Process()
				var protected error
				p.CallAt(n, func() { _, protected = c.protectStep(c.Process(), 2, 0) })
				err := verb(c, p)
				for _, err := range []error{err, protected} {
					if err != nil && !isBusy(err) {
						t.Fatalf("%s at %d ranks, protected before %v, at %v: %v", name, w.ranks, again, calls[n], err)
					}
				}
				if protected == nil {
					if done++; err == nil {
						both++
					}
					for i := range c.dirs {
						if is := c.names(i); !slices.Equal(is, []string{"step-1", "step-2"}) {
							t.Fatalf("%s at %d ranks, protected before %v, at %v: root %d has %q", name, w.ranks, again, calls[n], i, is)
						}
					}
				}
			}
			if done == 0 {
				t.Errorf("%s at %d ranks, protected before %v: no protection beside it succeeds", name, w.ranks, again)
			}
			t.Logf("%s at %d ranks, protected before %v: %d calls, %d protections, both %d times", name, w.ranks, again, len(calls), done, both)
		}
	}
}

// TestSnapshotsShared gives two ranks one root, and a lock that says who had it before: that is no other rank.
func TestSnapshotsShared(t *testing.T) {
	t.Parallel()
	mine := files.Holder{PID: 7, Host: "h", Run: "run", Rank: 1}
	for _, x := range []struct {
		theirs files.Holder
		want   string
	}{
		{files.Holder{PID: 8, Host: "h", Run: "other", Rank: 1}, "is busy: volley"},
		{files.Holder{PID: 7, Host: "h", Run: "run", Rank: 1}, "is busy: another run"},
		{files.Holder{PID: 9, Host: "h", Run: "run", Rank: 1}, "is busy: another run"},
		{files.Holder{PID: 8, Host: "h", Run: "run", Rank: 0}, "ranks 0 and 1 have one directory"},
		{files.Holder{}, "is busy: another run"},
	} {
		if err := (&files.BusyError{Path: "/r", Holder: x.theirs}).SeenBy(mine); !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v: want %q", x.theirs, err, x.want)
		}
	}
	// The locks of a file system that do not reach all machines: the file says who has it, too.
	other := newRoots(t, 3, 1, 1, 2)
	other.RemoveAll("/r0/step-2")
	other.RemoveAll("/r2/step-2")
	p := other.Process()
	p.Hook = func(c disktest.Call) error {
		if c.Op == "readdir" && c.Path == "/r1/step-2/.volley" {
			other.WriteFile("/r1/step-2/.volley/lock", []byte(`{"pid":7,"host":"h","verb":"protect","run":"other"}`), 0o600)
		}
		return nil
	}
	if r, err := other.latest(p); !isBusy(err) || !other.Exists("/r1/step-2") {
		t.Errorf("%+v, %v", r, err)
	}
	w := newRoots(t, 2, 1, 1)
	w.ranks = 2
	w.dirs[1] = w.dirs[0]
	if _, err := w.latest(w.Process()); !errors.As(err, new(*files.SharedError)) || !IsInputError(err) {
		t.Errorf("%v", err)
	}
}
