package volley_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"volley"
	"volley/collective"
	"volley/executor"
	"volley/field/fieldtest"
	"volley/internal/race"
	"volley/matrix/matrixtest"
	"volley/transport"
	"volley/transport/local"
)

// sharing runs f at the ranks of one host, which share memory, and none may fail.
func sharing(t *testing.T, ranks int, f func(ctx context.Context, tr transport.Transport) error) {
	t.Helper()
	for rank, err := range atRanks(t, ranks, []int{ranks}, f) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestWindowOrder gives two windows in another order at one rank, and one of them not at all: the result is right, and
// what all ranks give is used where it lies.
func TestWindowOrder(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	const ranks, size = 3, 1000
	a := matrixtest.Random(t, f, ranks, 1)
	packets := randomPackets(f, size, size, size)
	want := product(a, packets)
	for _, given := range []string{"all", "another order at one", "one less at one"} {
		e := mustEncoder(t, a)
		sharing(t, ranks, func(ctx context.Context, tr transport.Transport) error {
			var windows []*transport.Window
			for range 2 {
				w, err := volley.Share(ctx, tr, size, time.Minute)
				if err != nil {
					return err
				}
				defer w.Close()
				windows = append(windows, w)
			}
			data, coded := windows[0].Parts[tr.Rank()][:size], windows[1].Parts[tr.Rank()][:size]
			copy(data, packets[tr.Rank()])
			switch {
			case tr.Rank() != 1 || given == "all":
			case given == "one less at one":
				windows = windows[1:]
			default:
				slices.Reverse(windows)
			}
			b, err := e.Bind(ctx, tr, []volley.Packet{{Data: data, Result: &coded}}, windows...)
			if err != nil {
				return err
			}
			defer b.Close()
			if err := b.Run(); err != nil {
				return err
			}
			if !bytes.Equal(coded, want[tr.Rank()]) {
				return errors.New("a wrong packet")
			}
			return collective.Barrier(ctx, tr, 0) // all have looked
		})
	}
}

// TestWindowStages has short and long packets run over one transport by turns, again and again, and what
// was made ready of each: every one goes on with the stage that it has.
func TestWindowStages(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	a := matrixtest.Random(t, f, 3, 1)
	e, lengths := mustEncoder(t, a), []int{100, 90_000, 3_000}
	sharing(t, 3, func(ctx context.Context, tr transport.Transport) error {
		var bounds []*volley.Bound
		for turn := range 3 {
			for i := range lengths {
				packets := randomPackets(f, lengths[i], lengths[i], lengths[i])
				want, coded := product(a, packets)[tr.Rank()], []byte(nil)
				if turn == 0 {
					b, err := e.Bind(ctx, tr, []volley.Packet{{Data: packets[tr.Rank()], Result: &coded}})
					if err != nil {
						return err
					}
					defer b.Close()
					bounds = append(bounds, b)
				}
				if err := bounds[i].Run(); err != nil {
					return err
				}
				coded, _, err := e.Encode(ctx, tr, packets[tr.Rank()])
				if err != nil || !bytes.Equal(coded, want) {
					return fmt.Errorf("turn %d, packets of %d bytes: %w", turn, lengths[i], cmp.Or(err, errors.New("a wrong packet")))
				}
			}
		}
		return nil
	})
}

// TestWindowLate has a rank come too late to a run, and another come to the run of another encoder.
func TestWindowLate(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, hosts := range [][]int{{3}, {2, 2}} {
		n := 2 + len(hosts) // ranks
		a, packets := matrixtest.Random(t, f, n, 1), randomPackets(f, slices.Repeat([]int{100_000}, n)...)
		for _, late := range []bool{false, true} {
			run := func(timeout time.Duration) (errs []error, bound bool) {
				e := mustEncoder(t, a, volley.WithTimeout(timeout))
				var ready, ended atomic.Int32
				errs = atRanks(t, n, hosts, func(ctx context.Context, tr transport.Transport) error {
					var bounds []*volley.Bound
					for range 2 {
						b, err := e.Bind(ctx, tr, []volley.Packet{{Data: packets[tr.Rank()], Result: new([]byte)}})
						if err != nil {
							return err
						}
						bounds = append(bounds, b)
					}
					ready.Add(1)
					if tr.Rank() == 1 && !late {
						bounds[0] = bounds[1]
					}
					for tr.Rank() == 1 && late && int(ended.Load()) < n-1 && ctx.Err() == nil {
						time.Sleep(time.Millisecond)
					}
					err := bounds[0].Run()
					ended.Add(1)
					return err
				})
				return errs, int(ready.Load()) == n
			}
			timeout := time.Minute
			if late {
				timeout = 200 * time.Millisecond
			}
			errs, bound := run(timeout)
			for ; !bound && late; errs, bound = run(timeout) { // on a busy machine Bind was too late
				timeout *= 2
			}
			for rank, err := range errs {
				if err == nil || late && rank != 1 && !errors.Is(err, executor.ErrTimeout) || !late && !strings.Contains(err.Error(), "plan") {
					t.Errorf("%v, late %v: rank %d: %v", hosts, late, rank, err)
				}
			}
		}
	}
}

// TestBoundAllocates runs a Bound by messages, over the stage and in windows, and counts what is allocated: nothing.
func TestBoundAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has pools forget")
	}
	f := fieldtest.Parse(t, "2^8")
	a := matrixtest.Random(t, f, 2, 1)
	e := mustEncoder(t, a, volley.WithCheck(false))
	const size = 10_000
	for _, way := range []string{"messages", "stage", "window"} {
		start, over := make(chan struct{}), make(chan error)
		sharing(t, 2, func(ctx context.Context, end transport.Transport) error {
			tr := end
			if way == "messages" {
				tr = struct{ transport.Transport }{end}
			}
			w, err := volley.Share(ctx, end, 2*size, time.Minute)
			if err != nil {
				return err
			}
			data, result := make([]byte, size), make([]byte, size)
			if way == "window" {
				data, result = w.Parts[end.Rank()][:size], w.Parts[end.Rank()][size:][:size]
			}
			b, err := e.Bind(ctx, tr, []volley.Packet{{Data: data, Result: &result}}, w)
			if err != nil {
				return err
			}
			if end.Rank() == 1 {
				for range start {
					over <- b.Run()
				}
				return nil
			}
			defer close(start)
			var failed error
			if n := testing.AllocsPerRun(100, func() {
				start <- struct{}{}
				failed = cmp.Or(failed, b.Run(), <-over)
			}); n != 0 {
				return fmt.Errorf("%s: %v objects a run", way, n)
			}
			return failed
		})
	}
}

// TestPastCaches encodes packets whose results are longer than the caches,
// where results begin with a line of a cache and where they do not.
func TestPastCaches(t *testing.T) {
	const n = 9 << 20
	for _, name := range []string{"2^8", "2^16"} {
		f := fieldtest.Parse(t, name)
		a := matrixtest.Random(t, f, 2, 1)
		packets := [][]byte{bytes.Repeat([]byte{1, 2, 3, 4}, n/4), bytes.Repeat([]byte{7, 5}, n/2)}
		short := [][]byte{packets[0][:4], packets[1][:4]}
		want := product(a, short)
		for _, odd := range []int{0, 1} {
			results := make([][]byte, 2)
			var list []volley.Packet
			for i := range packets {
				results[i] = make([]byte, n+64)[odd*f.SymbolBytes():][:n:n]
				list = append(list, volley.Packet{Data: packets[i], Result: &results[i]})
			}
			if _, err := mustEncoder(t, a, volley.WithCheck(false)).Run(t.Context(), local.New(1)[0], list...); err != nil {
				t.Fatal(err)
			}
			for i, result := range results {
				if !bytes.Equal(result, bytes.Repeat(want[i], n/4)) {
					t.Errorf("%s, %d: a wrong packet of processor %d", name, odd, i)
				}
			}
		}
	}
}
