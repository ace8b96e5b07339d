package coded

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"volley/transport"
	"volley/transport/local"
)

// controlOnly is a transport that has no tags but those of control rounds.
type controlOnly struct{ transport.Transport }

func (c controlOnly) NewQueue() transport.Queue { return controlQueue{c.Transport.NewQueue()} }

type controlQueue struct{ transport.Queue }

func (q controlQueue) Post(list ...*transport.Transfer) {
	for _, x := range list {
		if x.Tag.Round >= transport.ControlRounds || x.Tag.Port > 0 {
			panic(fmt.Sprintf("a message of %v", x.Tag))
		}
	}
	q.Queue.Post(list...)
}

// fromTo has packets that tell their numbers, of different lengths.
type fromTo struct{ got []bytesAt }

type bytesAt []byte

func (b bytesAt) WriteAt(p []byte, offset int64) (int, error) { return copy(b[offset:], p), nil }

func packetOf(processor int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%05d", processor), 1+processor%4000)
}

func (fromTo) bytes(s processor) int64        { return int64(len(packetOf(s.input))) }
func (fromTo) reader(s processor) io.ReaderAt { return bytes.NewReader(packetOf(s.input)) }
func (n fromTo) writer(p int) io.WriterAt {
	n.got[p] = make(bytesAt, len(packetOf(p)))
	return n.got[p]
}

// TestMove moves far more packets than there are tags from a rank to another.
func TestMove(t *testing.T) {
	const ranks, count = 3, 1000
	at := newInventory(ranks, count, 0)
	procs := make([]processor, count)
	for rank := range ranks {
		for p, end := at.hosted(rank); p < end; p++ {
			procs[p] = processor{input: p, coded: -1, holder: (rank + p) % ranks}
		}
	}
	err := local.Run(t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
		r := newRun(ctx, controlOnly{tr}, Options{Timeout: time.Minute}, "decode")
		of := fromTo{make([]bytesAt, count)}
		if err := r.move(at, procs, of); err != nil {
			return err
		}
		for p, end := at.hosted(tr.Rank()); p < end; p++ {
			if procs[p].holder != tr.Rank() && !bytes.Equal(of.got[p], packetOf(p)) {
				t.Errorf("rank %d: the packet of processor %d is wrong", tr.Rank(), p)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
