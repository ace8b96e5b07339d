package pass

import (
	"context"
	"sync/atomic"

	"volley/collective"
	"volley/executor"
	"volley/group/internal/session"
	"volley/transport"
)

// A stage is memory of windows that the ranks of a host have together: each codes a slice of what all have read.
type stage struct {
	*session.Session
	window *transport.Window
	bytes  int         // of a window
	busy   atomic.Bool // this rank reads, and others may wait for it
}

// regions are those of the windows of a node: two by turns, and a part of one.
const (
	regions    = 3
	partRegion = 2
)

// newStage returns a stage for windows of so many bytes, or nil where the ranks do not share memory.
func newStage(ctx context.Context, s *session.Session, bytes int64) (*stage, error) {
	h := transport.HostOf(s.T)
	if s.T.Size() == 1 || h == nil || h.Unshared != nil {
		return nil, nil
	}
	hosted := (s.K + s.T.Size() - 1) / s.T.Size()
	w, err := collective.New(s.T, s.Timeout).Stage(ctx, regions*hosted*int(bytes))
	if h.Unshared != nil {
		s.Log.InfoContext(ctx, "the ranks of a host exchange messages", "error", h.Unshared)
		return nil, nil
	}
	return &stage{Session: s, window: w, bytes: int(bytes)}, err
}

// memory returns that of a window of any node.
func (g *stage) memory(node, region int) []byte {
	rank := executor.RankOf(node, g.K, g.T.Size())
	first, _ := executor.Hosted(g.K, rank, g.T.Size())
	return g.window.Parts[rank][(regions*(node-first)+region)*g.bytes:][:g.bytes]
}

// steady does work of this rank, for which others wait at the window.
func (g *stage) steady(ctx context.Context, work func(context.Context) error) error {
	g.busy.Store(true)
	defer g.busy.Store(false)
	return work(ctx)
}
