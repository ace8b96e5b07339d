package group_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"volley/group"
	"volley/group/protection"
	"volley/transport"
	"volley/transport/local"
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
	for _, again := range []bool{false, true} {
		dirs := trees(t, k, 2, 400_000, 5)
		o := group.ProtectOptions{Tolerate: 2}
		write := func(text string) {
			for _, dir := range dirs {
				must(t, os.WriteFile(dir+"/!first", []byte(text), 0o600))
			}
		}
		if write("something"); again {
			_, err := protect(1, dirs, o)
			must(t, err)
			write("other")
		}
		messages := 0
		for ; ; messages++ {
			left := new(atomic.Int64)
			left.Store(int64(messages))
			errs := make([]error, k)
			local.Run(t.Context(), k, func(ctx context.Context, tr transport.Transport) error {
				if tr.Rank() == 1 {
					tr = &liar{tr, left}
				}
				_, errs[tr.Rank()] = group.Join(tr, dirs[tr.Rank():][:1], options).Protect(ctx, o)
				return nil
			})
			if left.Load() >= 0 { // there are not so many
				must(t, errors.Join(errs...))
				break
			}
			for r, err := range errs {
				if !errors.As(err, new(*protection.CorruptError)) {
					t.Errorf("again %v, message %d: rank %d: %v", again, messages, r, err)
				}
			}
		}
		if messages < 4 {
			t.Errorf("again %v: %d messages", again, messages)
		}
		whole(t, 1, dirs)
	}
}
