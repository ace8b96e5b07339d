package group

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"volley/group/internal/session"
	"volley/group/protection"
	"volley/transport"
	"volley/transport/local"
)

// A Group is the nodes of a group, as far as this rank has them, and the options of all verbs. Its methods are the
// verbs, one at a time. Between two of them it holds no lock and no open file, and it knows nothing of the nodes: each
// verb reads anew what they hold.
type Group struct {
	dirs    []string
	options session.Setup
	t       transport.Transport // nil: each verb has one of its own, as an error ends it
	closed  atomic.Bool
}

// Join returns a group of which the transport's rank has the nodes with these directories. All ranks call the same
// verbs, each for its own directories. An error of a verb ends the transport, so that no rank waits for another: the
// next verb needs a new one. Whoever calls Join closes t.
func Join(t transport.Transport, dirs []string, o protection.Settings) *Group {
	return &Group{dirs: slices.Clone(dirs), options: session.Setup{Settings: o}, t: t}
}

// Open returns a group that has all of its nodes in this process. It changes nothing at them, and they need not be
// protected. It returns a [*protection.RefusedError] where one of the directories is, or lies in, another. After an error of a verb
// the group is as good as before. Close it at the end.
func Open(dirs []string, o protection.Settings) (*Group, error) {
	return open(dirs, session.Setup{Settings: o})
}

func open(dirs []string, o session.Setup) (*Group, error) {
	if err := session.Apart(o, dirs); err != nil {
		return nil, err
	}
	return &Group{dirs: slices.Clone(dirs), options: o}, nil
}

// Close ends the use of a group of Open: later verbs return an error that wraps [transport.ErrClosed]. It does nothing
// to a group of Join.
func (g *Group) Close() error {
	g.closed.Store(g.t == nil)
	return nil
}

// meet calls f with the session of a verb.
func meet[T any](ctx context.Context, g *Group, f func(*session.Session) (T, error)) (T, error) {
	return withTransport(g, func(t transport.Transport) (T, error) { return session.Meeting(ctx, t, g.options, f) })
}

// withTransport calls f with the transport of a verb.
func withTransport[T any](g *Group, f func(transport.Transport) (T, error)) (zero T, err error) {
	if g.closed.Load() {
		return zero, fmt.Errorf("the group is closed: open it again: %w", transport.ErrClosed)
	}
	t := g.t
	if t == nil {
		endpoint := local.New(1)[0]
		defer endpoint.Close()
		t = endpoint
	}
	return f(t)
}

// run does a verb's work on a session. Of roots it gives the other snapshots, where the one taken was to be found.
func run[T any](ctx context.Context, g *Group, v session.Verb, f func(context.Context, *session.Session, *surroundings) (T, error)) (T, error) {
	return meet(ctx, g, func(s *session.Session) (result T, err error) {
		var found *surroundings
		defer func() { found.Close() }()
		v.Pick = func(ctx context.Context, s *session.Session) (err error) {
			found.Close() // of nodes that were placed by what they said before they were locked
			found, err = pickSnapshot(ctx, s, v)
			return err
		}
		if err = s.Look(ctx, g.dirs, v); err == nil {
			err = s.Find(ctx, v)
		}
		if err != nil {
			return result, err
		}
		return f(ctx, s, found)
	})
}
