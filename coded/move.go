package coded

import (
	"context"
	"fmt"
	"io"
	"sync"

	"volley/executor"
	"volley/transport"
)

// A move is a packet that goes from the rank that has it to that of its slot.
type move struct {
	slot  int
	rank  int // the other one
	bytes int64
	from  io.ReaderAt // at the rank that has it
	to    io.WriterAt // at that of its slot
}

// A message has moveBytes of a packet, or less where many packets are moved: those of a rank have
// mostMoved together.
const (
	moveBytes = 256 << 10
	mostMoved = 16 << 20
	leastMove = 4 << 10
)

// move does the moves of this rank, all at once. All ranks call it, with all slots.
func (r *run) move(moves []move, at *held, slots []slot) error {
	all := 0
	for rank := range at.ranks {
		for p, end := at.hosted(rank); p < end; p++ {
			if slots[p].from != rank {
				all++
			}
		}
	}
	size := max(leastMove, min(moveBytes, mostMoved/max(all, 1)))
	errs := make([]error, len(moves))
	var wg sync.WaitGroup
	for i, m := range moves {
		wg.Go(func() {
			if errs[i] = r.moveOne(m, int64(size)); errs[i] != nil {
				r.fail(errs[i]) // or others would wait
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) moveOne(m move, size int64) error {
	tag := transport.Tag{Round: m.slot}
	buffer := make([]byte, min(size, m.bytes))
	for offset := int64(0); offset < m.bytes; offset += size {
		part := buffer[:min(size, m.bytes-offset)]
		if m.from != nil {
			if n, err := m.from.ReadAt(part, offset); n < len(part) {
				return err
			}
			if err := r.wait(func(ctx context.Context) error {
				return transport.Send(ctx, r.t, m.rank, tag, part)
			}, m); err != nil {
				return err
			}
			continue
		}
		if err := r.wait(func(ctx context.Context) error {
			return transport.Receive(ctx, r.t, m.rank, tag, part)
		}, m); err != nil {
			return err
		}
		if _, err := m.to.WriteAt(part, offset); err != nil {
			return err
		}
	}
	return nil
}

// wait bounds the time of a message.
func (r *run) wait(do func(ctx context.Context) error, m move) error {
	ctx, cancel := r.ctx, func() {}
	if r.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("%w: the packet of slot %d, between ranks %d and %d", executor.ErrTimeout, m.slot, r.t.Rank(), m.rank))
	}
	defer cancel()
	return do(ctx)
}
