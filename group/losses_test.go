package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/group/protection"
	"volley/internal/verifyall"
	"volley/transport"
	"volley/transport/local"
)

// TestLosses loses some sets of nodes, or many with the tag verifyall: as many as a group tolerates come back as they were. Where one
// more is lost, recover names them all, and writes nothing.
func TestLosses(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ k, r, ranks, tries int }{
		{2, 1, 1, 6}, {2, 1, 2, 6}, {4, 2, 1, 20}, {5, 2, 5, 12}, {5, 2, 3, 12}, {5, 4, 1, 20}, {6, 3, 6, 12}, {16, 4, 1, 16}, {16, 8, 1, 6},
	} {
		t.Run(fmt.Sprintf("K=%d,R=%d,ranks=%d", x.k, x.r, x.ranks), func(t *testing.T) {
			t.Parallel()
			w := newWorld(x.k, x.r)
			w.ranks = x.ranks
			must(t, w.protect(), w.whole())
			before := w.trees()
			rng := rand.New(rand.NewPCG(uint64(x.k), uint64(x.r)))
			for i := range x.tries * verifyall.Pick(1, 50) {
				c, lost := w.clone(), rng.Perm(x.k)[:1+rng.IntN(min(x.r+1, x.k-1))]
				if c.lose(i, lost...); len(lost) <= x.r {
					must(t, c.recover())
					if !slices.Equal(c.trees(), before) {
						t.Fatalf("lost %v: %v", lost, diff("all", strings.Join(before, ""), strings.Join(c.trees(), "")))
					}
					continue
				}
				left, few := c.everything(), new(protection.TooManyError)
				if err := c.recover(); !errors.As(err, &few) || len(few.Nodes) != len(lost) || c.everything() != left {
					t.Fatalf("lost %v: %v", lost, err)
				}
				for _, n := range lost {
					if !slices.Contains(few.Nodes, c.dirs[n]) {
						t.Errorf("lost %v: %v", lost, few)
					}
				}
			}
		})
	}
}

// errorsAt runs something at several ranks, and returns their errors.
func errorsAt(t *testing.T, ranks int, run func(ctx context.Context, tr transport.Transport) error) []error {
	errs := make([]error, ranks)
	local.Run(t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
		errs[tr.Rank()] = run(ctx, tr)
		return nil
	})
	return errs
}

// TestRanksAlike has ranks be told different things, or all find the same wrong: each says so itself, and not that another rank has
// stopped.
func TestRanksAlike(t *testing.T) {
	t.Parallel()
	protects := func(o func(rank int) ProtectOptions) func(context.Context, *Group, int) error {
		return func(ctx context.Context, g *Group, rank int) error { _, err := g.Protect(ctx, o(rank)); return err }
	}
	verifies := func(parts ...VerifyOptions) func(context.Context, *Group, int) error {
		return func(ctx context.Context, g *Group, rank int) error { _, err := g.Verify(ctx, parts[rank]); return err }
	}
	recovers := func(ctx context.Context, g *Group, _ int) error {
		_, err := g.Recover(ctx, RecoverOptions{})
		return err
	}
	none := func(*world) {}
	protected := func(w *world) { must(t, w.protect()) }
	for _, x := range []struct {
		what, want string
		do         func(w *world)
		run        func(ctx context.Context, g *Group, rank int) error
		keys       []protection.Settings
	}{
		{"other numbers", "tolerate", none, protects(func(rank int) ProtectOptions { return ProtectOptions{Tolerate: 1 + rank%2} }), nil},
		{"too many for all", "3", none, protects(func(int) ProtectOptions { return ProtectOptions{Tolerate: 3} }), nil},
		{"not protected", "not protected", none, recovers, nil},
		{"another order", "was given as node", func(w *world) { protected(w); w.dirs[0], w.dirs[1] = w.dirs[1], w.dirs[0] }, recovers, nil},
		{"too much lost", "2 nodes are lost", func(w *world) { protected(w); w.lose(0, 1, 2) }, recovers, nil},
		{"parts", "part (", protected, verifies(VerifyOptions{1, 3}, VerifyOptions{1, 3}, VerifyOptions{2, 3}), nil},
		{"parts or none", "part", protected, verifies(VerifyOptions{}, VerifyOptions{}, VerifyOptions{1, 2}), nil},
		{"numbers of parts", "parts (", protected, verifies(VerifyOptions{1, 2}, VerifyOptions{1, 3}, VerifyOptions{1, 2}), nil},
		{"another key", "another key", none, recovers, []protection.Settings{keyed(testKey), keyed(otherKey), keyed(testKey)}},
		{"a key or none", "give all the same", none, recovers, []protection.Settings{keyed(testKey), {}, keyed(testKey)}},
		{"no key, said or not", "give all the same", none, recovers, []protection.Settings{{}, {NoKey: true}, {}}},
		{"a key at the last", "give all the same", none, recovers, []protection.Settings{{}, {}, keyed(testKey)}},
	} {
		w := newWorld(3, 1)
		x.do(w)
		for r, err := range errorsAt(t, 3, func(ctx context.Context, tr transport.Transport) error {
			o := protection.Settings{}
			if x.keys != nil {
				o = x.keys[tr.Rank()]
			}
			return x.run(ctx, overSetup(tr, w.dirs[tr.Rank():][:1], w.options(w.Process(), o)), tr.Rank())
		}) {
			if !IsInputError(err) || errors.As(err, new(*transport.AbortError)) || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: rank %d: %v", x.what, r, err)
			}
		}
	}
}
