package group

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"volley/group/protection"
	"volley/transport"
)

// A liar changes one byte of the message of a plan that it sends after so many others.
type liar struct {
	transport.Transport
	left *atomic.Int64
}

func (l *liar) NewQueue() transport.Queue { return &liarQueue{l.Transport.NewQueue(), l.left} }

type liarQueue struct {
	transport.Queue
	left *atomic.Int64
}

func (q *liarQueue) Post(list ...*transport.Transfer) {
	for _, x := range list {
		if n := len(x.Parts); !x.Receive && x.Tag.Round >= transport.ControlRounds && n > 0 && q.left.Add(-1) == -1 {
			wrong := slices.Clone(x.Parts[n-1])
			wrong[len(wrong)/2] ^= 4
			x.Parts = append(slices.Clone(x.Parts[:n-1]), wrong)
		}
	}
	q.Queue.Post(list...)
}

// TestWrongParity has one byte of a message change, of each in turn, of data and of records: no rank takes the parity
// that comes of it. The second time around only the first block of each node is coded: those are as many of every
// codeword, so that no message has zeros that nobody stores.
func TestWrongParity(t *testing.T) {
	t.Parallel()
	const k = 4
	w := newWorld(k, 2)
	w.ranks = k
	for _, again := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(5, 5))
		for _, dir := range w.dirs {
			if !again {
				w.RemoveAll(dir)
				w.MkdirAll(dir, 0o755)
				w.WriteFile(dir+"/long", random(rng, 300_000), 0o600)
			}
			w.WriteFile(dir+"/!first", random(rng, 100), 0o600)
		}
		messages := 0
		for ; ; messages++ {
			left := new(atomic.Int64)
			left.Store(int64(messages))
			for r, err := range errorsAt(t, k, func(ctx context.Context, tr transport.Transport) error {
				o := w.options(w.Process(), protection.Settings{})
				dirs := w.dirs[tr.Rank():][:1]
				if tr.Rank() == 1 {
					tr = &liar{tr, left}
				}
				_, err := overSetup(tr, dirs, o).Protect(ctx, ProtectOptions{Tolerate: 2})
				return err
			}) {
				if errors.As(err, new(*protection.CorruptError)) != (left.Load() < 0) || err != nil && left.Load() >= 0 {
					t.Errorf("again %v, message %d: rank %d: %v", again, messages, r, err)
				}
			}
			if left.Load() >= 0 { // there are not so many
				break
			}
		}
		if messages < 4 {
			t.Errorf("again %v: %d messages", again, messages)
		}
		must(t, w.whole())
	}
}
