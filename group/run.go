package group

import (
	"context"

	"volley/transport"
)

// run does a verb's work on a session. Of roots it gives the other snapshots, where the one taken was to be found.
func run[T any](ctx context.Context, t transport.Transport, dirs []string, o Options, v verb, f func(context.Context, *session, *surroundings) (T, error)) (T, error) {
	return meeting(ctx, t, o, func(s *session) (result T, err error) {
		var found *surroundings
		defer func() { found.close() }()
		v.pick = func(ctx context.Context, s *session) (err error) {
			found, err = pick(ctx, s, v)
			return err
		}
		if err = s.look(ctx, dirs, v); err == nil {
			err = s.find(ctx, v)
		}
		if err != nil {
			return result, err
		}
		return f(ctx, s, found)
	})
}
