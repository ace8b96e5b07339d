package group_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"volley/group"
	"volley/transport"
)

// TestProgress adds up what verbs tell of their progress: in the end all is done that had to be, and never more than that.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 3, 6} {
		dirs := trees(t, 6, 9, 300_000, uint64(ranks))
		must(t, os.WriteFile(filepath.Join(dirs[5], "long"), make([]byte, 1<<20), 0o644)) // the others are shorter
		for _, c := range []struct {
			name  string
			do    func()
			verb  func(ctx context.Context, g *group.Group) error
			least int64
		}{
			{"protect", func() {}, func(ctx context.Context, g *group.Group) error {
				_, err := g.Protect(ctx, group.ProtectOptions{Tolerate: 2})
				return err
			}, 1 << 20},
			{"verify", func() {}, verifies, 1 << 20},
			{"status", func() {}, glances, 0},
			{"recover two", func() { lose(t, dirs, []int{1, 5}) }, recovers, 1 << 20},
			{"recover a file", func() { os.Remove(filepath.Join(dirs[5], "long")) }, recovers, 3 << 20},
			{"verify again", func() {}, verifies, 1 << 20},
		} {
			c.do()
			var mu sync.Mutex
			var done, total int64
			o := options
			o.Progress = func(d, more int64) {
				mu.Lock()
				defer mu.Unlock()
				if done, total = done+d, total+more; done > total || d < 0 || more < 0 {
					t.Errorf("%s, %d ranks: %d of %d bytes after %d, %d", c.name, ranks, done, total, d, more)
				}
			}
			_, err := everywhere(ranks, dirs, func(ctx context.Context, t transport.Transport, dirs []string) (bool, error) {
				return true, c.verb(ctx, group.Join(t, dirs, o))
			})
			must(t, err)
			if done != total || total < c.least || c.least == 0 && total > 0 {
				t.Errorf("%s, %d ranks: %d of %d bytes, want %d or more", c.name, ranks, done, total, c.least)
			}
		}
	}
}

func verifies(ctx context.Context, g *group.Group) error {
	_, err := g.Verify(ctx, group.VerifyOptions{})
	return err
}

func glances(ctx context.Context, g *group.Group) error {
	_, err := g.Status(ctx)
	return err
}

func recovers(ctx context.Context, g *group.Group) error {
	_, err := g.Recover(ctx, group.RecoverOptions{})
	return err
}
