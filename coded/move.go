package coded

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"volley/executor"
	"volley/transport"
)

// A move is a packet that goes from the rank that has it to that of its processor.
type move struct {
	processor int
	rank      int // the other one
	bytes     int64
	reader    io.ReaderAt // at the rank that has it
	writer    io.WriterAt // at that of its processor
}

// A message has moveBytes of a packet, or less of many packets: those of a rank have mostMoved together.
const (
	moveBytes = 256 << 10
	mostMoved = 16 << 20
	leastMove = 4 << 10
)

// A mover has the packets of this rank, by processor.
type mover interface {
	bytes(s processor) int64        // of the packet of a processor
	reader(s processor) io.ReaderAt // a packet that this rank has
	writer(p int) io.WriterAt       // takes the packet of a processor of this rank
}

// A stream has messages of one tag from one rank to another: packets one after the other.
type stream struct{ sender, receiver, number int }

// streams is how many there are from a rank to another. So the tags are those of [transport.ControlRounds], which every
// transport has, however many packets there are.
const streams = transport.ControlRounds

// move brings all packets to the ranks of their processors, those of different streams at once. All ranks call it.
func (r *run) move(holders *inventory, procs []processor, packets mover) error {
	concurrent := min(len(procs), 2*holders.ranks*streams) // streams of a rank that have a packet
	size := int64(max(leastMove, min(moveBytes, mostMoved/concurrent)))
	moves, between := map[stream][]move{}, map[stream]int{}
	for rank := range holders.ranks {
		for p, end := holders.hosted(rank); p < end; p++ {
			s := procs[p]
			m := move{processor: p, bytes: packets.bytes(s)}
			switch {
			case s.holder == rank:
				continue
			case r.t.Rank() == rank:
				m.rank, m.writer = s.holder, packets.writer(p)
			case r.t.Rank() == s.holder:
				m.rank, m.reader = rank, packets.reader(s)
			default:
				continue
			}
			pair := stream{sender: s.holder, receiver: rank}
			l := pair
			l.number = between[pair] % streams // at both ranks: they go through the processors in the same order
			between[pair]++
			moves[l] = append(moves[l], m)
		}
	}
	var group errgroup.Group
	for l, list := range moves {
		group.Go(func() error {
			for _, m := range list {
				if err := r.moveOne(m, transport.Tag{Round: l.number}, size); err != nil {
					return r.fail(err) // or others would wait
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *run) moveOne(m move, tag transport.Tag, size int64) error {
	buffer := make([]byte, min(size, m.bytes))
	for offset := int64(0); offset < m.bytes; offset += size {
		part := buffer[:min(size, m.bytes-offset)]
		pass := transport.Receive
		if m.reader != nil {
			pass = transport.Send
			if n, err := m.reader.ReadAt(part, offset); n < len(part) {
				return err
			}
		}
		ctx, cancel := r.ctx, func() {}
		if r.Timeout > 0 {
			ctx, cancel = context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("%w: the packet of processor %d, between ranks %d and %d", executor.ErrTimeout, m.processor, r.t.Rank(), m.rank))
		}
		err := pass(ctx, r.t, m.rank, tag, part)
		cancel()
		if err != nil {
			return err
		}
		if m.writer != nil {
			if _, err := m.writer.WriteAt(part, offset); err != nil {
				return err
			}
		}
	}
	return nil
}
