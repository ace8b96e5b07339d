package group

import (
	"context"

	"volley/group/internal/session"
	"volley/group/internal/snapshot"
	"volley/transport"
)

// run does a verb's work on a session. Of roots it gives the other snapshots, where the one taken was to be found.
func run[T any](ctx context.Context, t transport.Transport, dirs []string, o Options, v session.Verb, f func(context.Context, *session.Session, *snapshot.Surroundings) (T, error)) (T, error) {
	return session.Meeting(ctx, t, o, func(s *session.Session) (result T, err error) {
		var found *snapshot.Surroundings
		defer func() { found.Close() }()
		v.Pick = func(ctx context.Context, s *session.Session) (err error) {
			found, err = snapshot.Pick(ctx, s, v)
			return err
		}
		if err = s.Look(ctx, dirs, v); err == nil {
			err = s.Find(ctx, v)
		}
		if err != nil {
			return result, err
		}
		return f(ctx, s, found)
	})
}
