package collective

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"

	"volley/internal/sharedmemory"
	"volley/transport"
)

// ErrApart says that the ranks of a transport do not run on one host, or that what they do is to travel as messages.
var ErrApart = errors.New("the ranks have no host in common")

// Share makes memory of so many bytes for each rank, zero, that all read and write: in pages of its own, at most 64 GiB
// together. All ranks call it with the same number. It returns [ErrApart], or one error at all ranks where memory cannot be
// shared although they run on one host; the transport may be used further.
func (c *Comm) Share(ctx context.Context, bytes int) (*transport.Window, error) {
	h := transport.HostOf(c.t)
	if h == nil {
		return nil, ErrApart
	}
	if h.Unshared != nil {
		return nil, h.Unshared
	}
	const page, limit = 4096, min(64<<30, math.MaxInt)
	size, n := max(1, (bytes+page-1)/page)*page, c.t.Size()
	flags := (n*transport.FlagBytes + page - 1) / page * page
	if bytes < 0 || size > limit/n {
		return nil, fmt.Errorf("a window of %d bytes for each of %d ranks: want %d or less", bytes, n, limit/n)
	}
	total := page + flags + n*size // the name is in the first page
	type offer struct {
		Bytes int
		Name  sharedmemory.Handle
		Error string
	}
	var memory *sharedmemory.Memory
	mine := offer{Bytes: bytes}
	var err error
	if c.t.Rank() == 0 {
		if memory, mine.Name, err = sharedmemory.Create(total); err != nil {
			mine.Error = err.Error()
		}
	}
	drop := func(err error) (*transport.Window, error) {
		if memory != nil {
			memory.Unmap()
		}
		return nil, err
	}
	offers, err := AllgatherValues(ctx, c.t, mine, c.timeout)
	if err != nil {
		return drop(err)
	}
	for rank, o := range offers {
		if o.Bytes != bytes {
			return drop(c.SharedError(ctx, fmt.Errorf("a window of %d bytes at rank %d, and of %d at rank %d: give the same at all ranks", o.Bytes, rank, bytes, c.t.Rank())))
		}
	}
	var failure string
	if c.t.Rank() != 0 && offers[0].Error == "" {
		if memory, err = sharedmemory.Open(offers[0].Name, total); err != nil {
			failure = fmt.Sprintf("rank %d, process %d: %v", c.t.Rank(), os.Getpid(), err)
		}
	}
	opened, err := AllgatherValues(ctx, c.t, cmp.Or(mine.Error, failure), c.timeout)
	if err != nil {
		return drop(err)
	}
	if wrong := cmp.Or(opened...); wrong != "" {
		h.Unshared = fmt.Errorf("the ranks cannot share memory: %s", wrong)
		return drop(h.Unshared)
	}
	memory.Opened()
	cut := func(offset, size int) [][]byte {
		list := make([][]byte, n)
		for r := range list {
			list[r] = memory.Data[offset+r*size:][:size:size]
		}
		return list
	}
	return transport.NewWindow(offers[0].Name.Nonce, c.t.Rank(), cut(page+flags, size), cut(page, transport.FlagBytes), memory.Unmap), nil
}

// Meet is [transport.Window.Meet] of the ranks of the transport, which all run on one host.
func (c *Comm) Meet(ctx context.Context, w *transport.Window, says uint64) (differing int, err error) {
	return w.Meet(ctx, transport.HostOf(c.t), says, c.timeout, func(rank int) error { return transport.TimedOut(c.t, rank, c.timeout) })
}

// Live gives signs of life to those that wait for this rank at a window, while it is busy and until the context ends, which
// an abort cancels.
func (c *Comm) Live(ctx context.Context, cancel context.CancelCauseFunc, w *transport.Window, busy *atomic.Bool) {
	ticks := time.NewTicker(c.beat())
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if busy.Load() {
				w.Live()
			}
			if err := transport.HostOf(c.t).Aborted(); err != nil {
				cancel(err)
			}
		}
	}
}

// Stage returns the window by which runs of the transport exchange what lies elsewhere, of so many bytes for each rank or
// more: the last one, or a new one where that is shorter. Ranks call it, and fail, as with [Comm.Share].
func (c *Comm) Stage(ctx context.Context, bytes int) (*transport.Window, error) {
	h := transport.HostOf(c.t)
	if h != nil && len(h.Stages) > 0 {
		if last := h.Stages[len(h.Stages)-1]; len(last.Parts[0]) >= bytes {
			return last, nil
		}
	}
	w, err := c.Share(ctx, bytes)
	if err != nil {
		return nil, err
	}
	h.Stages = append(h.Stages, w)
	return w, nil
}
