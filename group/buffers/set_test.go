package buffers

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"volley/transport"
	"volley/transport/local"
)

// TestSet protects sets, loses those of two ranks, and gets all back.
func TestSet(t *testing.T) {
	t.Parallel()
	const ranks = 5
	sets, want := make([]*Set, ranks), make([][][]byte, ranks)
	each := func(o Options, do func(ctx context.Context, s *Set) error) {
		t.Helper()
		if err := local.Run(t.Context(), ranks, func(ctx context.Context, t transport.Transport) error {
			old, r := sets[t.Rank()], t.Rank()
			sets[r] = New(t, o, old.Buffers...)
			sets[r].Parity = old.Parity
			return do(ctx, sets[r])
		}); err != nil {
			t.Fatal(err)
		}
	}
	for r := range sets {
		sets[r] = &Set{Buffers: [][]byte{bytes.Repeat([]byte{byte(r)}, 1000*r), fmt.Appendf(nil, "rank %d", r)}}
		for _, b := range sets[r].Buffers {
			want[r] = append(want[r], bytes.Clone(b))
		}
	}
	protect := func(ctx context.Context, s *Set) error { return s.Protect(ctx) }
	each(Options{Tolerate: 2}, protect)
	sets[1], sets[4] = &Set{}, &Set{Parity: bytes.Clone(sets[2].Parity)} // which is that of another rank
	sets[0].Buffers = sets[0].Buffers[:1]                                // so that recover fails: who is lost says so again
	if err := local.Run(t.Context(), ranks, func(ctx context.Context, t transport.Transport) error {
		s := sets[t.Rank()]
		s.t = t
		_, err := s.Recover(ctx)
		return err
	}); err == nil {
		t.Error("recover with other buffers than were protected")
	}
	sets[0].Buffers = sets[0].Buffers[:2]
	lost := map[int]bool{}
	each(Options{}, func(ctx context.Context, s *Set) error {
		r, err := s.Recover(ctx)
		if err == nil && s.t.Rank() == 0 {
			for _, rank := range r.Lost {
				lost[rank] = true
			}
		}
		return err
	})
	for r, s := range sets {
		if fmt.Sprint(s.Buffers) != fmt.Sprint(want[r]) {
			t.Errorf("rank %d has other buffers", r)
		}
	}
	if len(lost) != 2 || !lost[1] || !lost[4] {
		t.Errorf("lost: %v", lost)
	}
	room := &sets[3].Parity[0]
	each(Options{Tolerate: 2}, protect)
	if room != &sets[3].Parity[0] {
		t.Error("parity that has room is made anew")
	}
}
