package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"volley/collective"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/transport"
	"volley/transport/local"
)

// seat finds out how many nodes a snapshot has, and where they lie: first where roots, and then spares, say so. Other roots take
// places that are free: those that have it, that cannot be read, and that have it not. New spares stand for nodes that are left.
// A root without a place may have what was never in force: a node that was lost meanwhile comes back.
func (x *Snapshot) seat(roots []*rootState) error {
	votes := map[int]int{}
	var owners, spares []*rootState // those that have it are spares
	holds := func(root *rootState) bool { return root.Steps[x.Step] != nil }
	for _, root := range roots {
		if holds(root) {
			for _, h := range root.Steps[x.Step].Held {
				votes[h.Nodes]++
			}
		}
		if root.Spare == "" {
			owners = append(owners, root)
		} else if holds(root) {
			spares = append(spares, root)
		}
	}
	for nodes, count := range votes {
		if count > votes[x.Nodes] || count == votes[x.Nodes] && nodes > x.Nodes {
			x.Nodes = nodes
		}
	}
	x.seats = make([]*rootState, cmp.Or(x.Nodes, len(owners)))
	sit := func(root *rootState, numbers ...int) {
		for _, n := range numbers {
			if n >= 0 && n < len(x.seats) && x.seats[n] == nil && !slices.Contains(x.seats, root) {
				x.seats[n] = root
			}
		}
	}
	for _, root := range slices.Concat(owners, spares) {
		if holds(root) {
			sit(root, root.Steps[x.Step].NumberAmong(len(x.seats)))
		}
	}
	fails := func(root *rootState) bool { return root.Failing != "" }
	for _, next := range []func(*rootState) bool{holds, fails, func(*rootState) bool { return true }} {
		for _, root := range owners {
			if next(root) {
				sit(root, root.Node, slices.Index(x.seats, nil))
			}
		}
	}
	for _, root := range spares { // begun by a run that has ended, for the node of its name
		if n, err := strconv.Atoi(strings.TrimPrefix(root.Spare, session.SparePrefix)); err == nil {
			sit(root, n)
		}
	}
	for _, root := range owners {
		switch {
		case !holds(root) || slices.Contains(x.seats, root):
		case root.Steps[x.Step].NeverInForce():
			x.stale = append(x.stale, root.Seat)
		default:
			return store.Inputf("it is of %d nodes, and other roots have it, too, such as %s: move away what is not of this group", len(x.seats), root.Dir)
		}
	}
	for n, root := range x.seats {
		if root == nil {
			host := slices.MinFunc(owners, func(a, b *rootState) int { return cmp.Compare(x.burden(a), x.burden(b)) })
			name := fmt.Sprint(session.SparePrefix, n)
			x.seats[n] = &rootState{Seat: session.Seat{Node: host.Node, Spare: name, Dir: tree.JoinPath(host.Dir, tree.Name(name))}}
		}
	}
	return nil
}

// burden says how little a root is one to have another spare.
func (x *Snapshot) burden(root *rootState) (seats int) {
	for _, seat := range x.seats {
		if seat != nil && seat.Node == root.Node {
			seats++
		}
	}
	if root.Failing != "" {
		seats += len(x.seats)
	}
	return seats
}

// seatsError returns a [*session.SeatsError] unless the nodes of a snapshot are those of the run.
func (x *Snapshot) seatsError(s *session.Session) error {
	e := &session.SeatsError{Step: x.Step, Nodes: s.Nodes}
	moved := len(x.seats) != s.K
	for n, root := range x.seats {
		e.Seats, e.Ranks = append(e.Seats, root.Seat), append(e.Ranks, s.RankOf(root.Node))
		moved = moved || root.Node != n || root.Spare != ""
	}
	switch {
	case !moved:
		return nil
	case s.Seated:
		return fmt.Errorf("%s: other nodes have it than did a moment ago: run again", session.StepName(x.Step))
	}
	return e
}

// run does a verb's work on a session, of roots with the nodes that the snapshot has.
func run[T any](ctx context.Context, g *Group, v session.Verb, f task[T]) (T, error) {
	result, err := runOnce(ctx, g, v, f)
	if e, ok := errors.AsType[*session.SeatsError](err); ok {
		return runAt(ctx, g, v, f, e)
	}
	return result, err
}

// An ending is what the ranks that have seats tell the others.
type ending[T any] struct {
	Result T
	Lost   *session.LostError
}

// runAt runs a verb with each node of a snapshot at the rank that has its root.
func runAt[T any](ctx context.Context, g *Group, v session.Verb, f task[T], e *session.SeatsError) (result T, err error) {
	if g.t == nil || g.t.Size() == 1 {
		return runOnce(ctx, g.seatGroup(g.t, e, e.Seats), v, f)
	}
	var ours []session.Seat
	for n, rank := range e.Ranks {
		if rank == g.t.Rank() {
			ours = append(ours, e.Seats[n])
		}
	}
	ends := local.NewOver(g.t, e.Ranks)
	mine, errs := make([]ending[T], len(ends)), make([]error, len(ends))
	var runs sync.WaitGroup
	for i, end := range ends {
		runs.Go(func() {
			mine[i].Result, errs[i] = runOnce(ctx, g.seatGroup(end, e, ours[i:i+1]), v, f)
			if errors.As(errs[i], &mine[i].Lost) {
				errs[i] = nil
			}
			end.Close()
		})
	}
	runs.Wait()
	for _, failed := range errs {
		if failed != nil && (err == nil || errors.As(err, new(*transport.AbortError))) {
			err = failed
		}
	}
	if err != nil {
		return result, err
	}
	told, err := collective.AllgatherValues(ctx, g.t, mine[:min(1, len(mine))], 0) // others may be at work for long
	if err != nil {
		return result, err
	}
	first := append(mine, told[e.Ranks[0]]...)[0]
	if first.Lost != nil {
		return result, first.Lost
	}
	return first.Result, nil
}

// seatGroup returns the group of a snapshot that has seats, of which a rank has some.
func (g *Group) seatGroup(t transport.Transport, e *session.SeatsError, seats []session.Seat) *Group {
	seated := &Group{options: g.options, t: t}
	o := &seated.options
	o.Seated, o.Step, o.Names, o.Absent = true, e.Step, nil, nil
	for _, x := range seats {
		root := e.Nodes[slices.IndexFunc(e.Nodes, func(n *store.Node) bool { return n.Index == x.Node })]
		seated.dirs = append(seated.dirs, filepath.Join(root.Root, x.Spare))
		o.Absent = append(o.Absent, root.Absent)
		if g.options.Names != nil {
			o.Names = append(o.Names, x.Dir)
		}
	}
	return seated
}
