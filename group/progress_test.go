package group

import (
	"context"
	"sync"
	"testing"

	"volley/group/protection"
)

// TestProgress adds up what verbs tell of their progress: in the end all is done that had to be, and never more than that.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 3, 6} {
		w := newWorld(6, 2)
		w.ranks, w.deletes = ranks, false
		w.WriteFile("/n5/long", make([]byte, 1<<20), 0o644) // the others are shorter
		recovers := func(ctx context.Context, g *Group) error {
			_, err := g.Recover(ctx, RecoverOptions{Revert: protection.Edits{Deleted: true}})
			return err
		}
		verifies := func(ctx context.Context, g *Group) error { _, err := g.Verify(ctx, VerifyOptions{}); return err }
		for _, c := range []struct {
			name  string
			do    func()
			verb  func(ctx context.Context, g *Group) error
			least int64
		}{
			{"protect", func() {}, func(ctx context.Context, g *Group) error {
				_, err := g.Protect(ctx, ProtectOptions{Tolerate: 2})
				return err
			}, 1 << 20},
			{"verify", func() {}, verifies, 1 << 20},
			{"status", func() {}, func(ctx context.Context, g *Group) error { _, err := g.Status(ctx); return err }, 0},
			{"recover two", func() { w.lose(0, 1, 5) }, recovers, 1 << 20},
			{"recover a file", func() { w.Remove("/n5/long") }, recovers, 3 << 20},
			{"verify again", func() {}, verifies, 1 << 20},
		} {
			c.do()
			var mu sync.Mutex
			var done, total int64
			tell := func(d, more int64) {
				mu.Lock()
				defer mu.Unlock()
				if done, total = done+d, total+more; done > total || d < 0 || more < 0 {
					t.Errorf("%s, %d ranks: %d of %d bytes after %d, %d", c.name, ranks, done, total, d, more)
				}
			}
			_, err := overRanks(w.with(protection.Settings{Progress: tell}), w.Process(), func(ctx context.Context, g *Group) (bool, error) {
				return true, c.verb(ctx, g)
			})
			must(t, err)
			if done != total || total < c.least || c.least == 0 && total > 0 {
				t.Errorf("%s, %d ranks: %d of %d bytes, want %d or more", c.name, ranks, done, total, c.least)
			}
		}
	}
}
