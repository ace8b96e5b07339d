package coded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"volley"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/transport"
	"volley/transport/local"
)

// encoded returns the coded packets of some in memory.
func encoded(t *testing.T, a matrix.Matrix, inputs map[int][]byte) map[int][]byte {
	t.Helper()
	all := map[int][]byte{}
	var mu sync.Mutex
	err := local.Run(t.Context(), len(inputs), func(ctx context.Context, tr transport.Transport) error {
		packet, _, err := volley.Encode(ctx, tr, a, inputs[tr.Rank()])
		mu.Lock()
		defer mu.Unlock()
		all[tr.Rank()] = packet
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDecodePackets loses packets and coded packets in memory. Ranks have those of their own
// processors, or any.
func TestDecodePackets(t *testing.T) {
	t.Parallel()
	const k = 6
	a := matrixOf(t, "2^8", k)
	random := rand.New(rand.NewPCG(1, 2))
	inputs := map[int][]byte{}
	var mu sync.Mutex
	for p := range k {
		inputs[p] = make([]byte, 600_000-1000*p) // longer than a message of a move
		for i := range inputs[p] {
			inputs[p][i] = byte(random.Uint32())
		}
	}
	all := encoded(t, a, inputs)
	for _, c := range []struct {
		ranks  int
		lost   []int
		gone   []int // coded packets that are lost
		apart  bool  // packets are anywhere
		decode bool  // it is possible
	}{
		{k, nil, nil, false, true},
		{k, []int{2}, nil, false, true},
		{k, []int{2}, []int{2}, false, true},
		{k, []int{0, 1, 5}, []int{0, 1, 5}, false, true},
		{k, []int{0, 1, 5}, []int{0, 1, 2, 5}, false, false},
		{k, []int{0, 1, 2, 3, 4, 5}, nil, false, true},
		{k, []int{3, 4}, []int{0}, true, true},
		{k, []int{0, 1, 2, 3, 4, 5}, nil, true, true},
		{4, []int{3, 4}, []int{0}, false, true},
		{4, []int{0, 5}, nil, true, true},
		{1, []int{1, 4}, []int{3, 4}, false, true},
	} {
		t.Run(fmt.Sprintf("%d ranks lose %v and coded %v, apart %v", c.ranks, c.lost, c.gone, c.apart), func(t *testing.T) {
			got := map[int][]byte{}
			at := newInventory(c.ranks, k, k)
			err := local.Run(t.Context(), c.ranks, func(ctx context.Context, tr transport.Transport) error {
				mine := func(packets map[int][]byte, without []int, shift int) map[int][]byte {
					some := map[int][]byte{}
					for n, packet := range packets {
						first, end := at.hosted(tr.Rank())
						if here := first <= n && n < end; (!c.apart && here || c.apart && (n*n+shift)%c.ranks == tr.Rank()) && !slices.Contains(without, n) {
							some[n] = packet
						}
					}
					return some
				}
				results, _, err := DecodePackets(ctx, tr, MemoryDecoding{
					Matrix: a, Inputs: mine(inputs, c.lost, 1), Coded: mine(all, c.gone, 3), Timeout: time.Minute,
				})
				mu.Lock()
				defer mu.Unlock()
				for n, packet := range results {
					if first, end := at.hosted(tr.Rank()); !c.apart && (n < first || n >= end) {
						t.Errorf("rank %d obtains packet %d", tr.Rank(), n)
					}
					got[n] = packet
				}
				return err
			})
			if !c.decode {
				if !errors.As(err, new(*InputError)) || !strings.Contains(err.Error(), "3 packets of 6 lost") {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(c.lost) {
				t.Errorf("%d results", len(got))
			}
			for _, n := range c.lost {
				want := make([]byte, len(inputs[0]))
				copy(want, inputs[n])
				if !bytes.Equal(got[n], want) {
					t.Errorf("packet %d comes back otherwise", n)
				}
			}
		})
	}
}

// TestDecodePacketsErrors gives packets that do not fit: all ranks say so.
func TestDecodePacketsErrors(t *testing.T) {
	t.Parallel()
	a := matrixOf(t, "2^8", 2)
	other, err := matrix.Random(fieldtest.Parse(t, "2^8"), 2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for want, d := range map[string]MemoryDecoding{
		"coded packet 2":                    {Coded: map[int][]byte{2: nil}},
		"has packet -1":                     {Inputs: map[int][]byte{-1: nil}},
		"have 3 and 2 bytes":                {Coded: map[int][]byte{1: make([]byte, 2)}},
		"has 4 bytes: want at most 3":       {Inputs: map[int][]byte{1: make([]byte, 4)}},
		"tell no more than 1 of them":       {},
		"rank 1 differs from rank 0 in mat": {Matrix: other},
		"coded packets at hand tell no mor": {},
	} {
		errs := make([]error, 2)
		local.Run(t.Context(), 2, func(ctx context.Context, tr transport.Transport) error {
			mine := MemoryDecoding{Coded: map[int][]byte{0: make([]byte, 3)}}
			if tr.Rank() == 1 {
				mine = d
			}
			mine.Timeout = time.Minute
			if mine.Matrix == nil {
				mine.Matrix = a
			}
			_, _, errs[tr.Rank()] = DecodePackets(ctx, tr, mine)
			return errs[tr.Rank()]
		})
		for rank, err := range errs {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: rank %d: %v", want, rank, err)
			}
		}
	}
}

// TestOptionsMissing leaves out what has no default, and gives what no run can have.
func TestOptionsMissing(t *testing.T) {
	t.Parallel()
	f := fieldtest.Parse(t, "2^8")
	in := t.TempDir()
	writeText(t, filepath.Join(in, "a"), "1")
	writeText(t, filepath.Join(in, "b"), "2")
	spec, a := matrices.Spec{Family: "cauchy"}, matrixOf(t, "2^16", 2)
	for name, e := range map[string]Encoding{
		"no field": {}, "too few sinks": {Field: f, Sinks: -1}, "too many sinks": {Field: f, Sinks: 1 << 30},
	} {
		e.Options, e.Matrix, e.Files = Options{Dir: t.TempDir()}, spec, []string{in}
		if _, err := Encode(t.Context(), local.New(1)[0], e); !errors.As(err, new(*InputError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, d := range map[string]MemoryDecoding{
		"no matrix":                     {},
		"half a symbol":                 {Matrix: a, Coded: map[int][]byte{0: {1}, 1: {2}}},
		"half a symbol beside a packet": {Matrix: a, Inputs: map[int][]byte{0: {1}}, Coded: map[int][]byte{1: {1, 2}}},
	} {
		packets, _, err := DecodePackets(t.Context(), local.New(1)[0], d)
		if !errors.As(err, new(*InputError)) || packets != nil {
			t.Errorf("%s: %v, %v: want an error and no packets", name, packets, err)
		}
	}
}

func matrixOf(t *testing.T, name string, k int) matrix.Matrix {
	t.Helper()
	a, err := matrices.Spec{Family: "cauchy"}.Build(fieldtest.Parse(t, name), k, k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
