package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"volley/transport"
	"volley/transport/local"
)

// A meeting is where ranks of this process wait for each other and show what they have.
type meeting struct {
	all     *sync.Cond
	size    int
	arrived int
	round   int
	shown   []any
}

func newMeeting(k int) *meeting {
	return &meeting{all: sync.NewCond(&sync.Mutex{}), size: k, shown: make([]any, k)}
}

// wait returns when all ranks have called it.
func (m *meeting) wait() {
	m.all.L.Lock()
	defer m.all.L.Unlock()
	round := m.round
	if m.arrived++; m.arrived == m.size {
		m.arrived, m.round = 0, m.round+1
		m.all.Broadcast()
	}
	for m.round == round {
		m.all.Wait()
	}
}

// A thread is a rank in this process. It does what mpiRanks do, without MPI.
type thread struct {
	transport.Transport
	m    *meeting
	lies bool // changes a byte of what it sends
}

// show calls f with what every rank shows.
func (r *thread) show(mine any, f func(shown []any)) {
	r.m.shown[r.Rank()] = mine
	r.m.wait()
	f(r.m.shown)
	r.m.wait()
}

func (r *thread) Exclusive(f func()) { f() }
func (r *thread) barrier()           { r.m.wait() }
func (r *thread) assemble()          { r.m.wait() }

func (r *thread) reduce(v []float64, f func(a, b float64) float64) {
	r.show(slices.Clone(v), func(shown []any) {
		for other, w := range shown {
			for i, x := range w.([]float64) {
				if other != r.Rank() {
					v[i] = f(v[i], x)
				}
			}
		}
	})
}

func (r *thread) greatest(v []float64) {
	r.reduce(v, func(a, b float64) float64 { return max(a, b) })
}

func (r *thread) sum(v []float64) {
	r.reduce(v, func(a, b float64) float64 { return a + b })
}

func (r *thread) used() float64 { return 0 }

func (r *thread) allgather(x, all []byte, _ bool) {
	r.show(x, func(shown []any) {
		for i, b := range shown {
			copy(all[i*len(x):], b.([]byte))
		}
	})
}

func (r *thread) alltoall(out, in []byte, _ bool) {
	own, n := r.Rank(), len(in)/r.Size()
	if r.lies {
		out = slices.Clone(out)
		out[0]++
	}
	r.show(out, func(shown []any) {
		for i, b := range shown {
			copy(in[i*n:], b.([]byte)[own*n:][:n])
		}
	})
}

func (r *thread) exchange(out, in []byte) {
	own := slices.Clone(in)
	r.alltoall(out, in, false)
	n := len(in) / r.Size()
	copy(in[r.Rank()*n:][:n], own[r.Rank()*n:]) // stays
}

func (r *thread) shift(out, in []byte, to, from int) func() {
	r.show(slices.Clone(out), func(shown []any) { copy(in, shown[from].([]byte)) })
	return func() {}
}

func (r *thread) raw(out, in []byte) error {
	r.exchange(out, in)
	return nil
}

func (r *thread) window([]byte, []byte) (sharedWindow, error) {
	return nil, errors.New("threads have none")
}

// run runs k ranks in this process.
func run(t *testing.T, k int, rank func(*thread) error) error {
	t.Helper()
	m := newMeeting(k)
	return local.Run(t.Context(), k, func(_ context.Context, e transport.Transport) error {
		return rank(&thread{Transport: e, m: m})
	})
}

// TestWrong has a rank that sends other bytes than it should. Only the peers that send them
// are wrong, and the exit code is 3.
func TestWrong(t *testing.T) {
	output := filepath.Join(t.TempDir(), "cells")
	err := measureHere(t, 3, []string{"--sizes", "768", "--runs", "2", "--json", output}, true)
	if code := exitCode(io.Discard, err); !errors.Is(err, errWrong) || code != 3 {
		t.Errorf("%v, exit code %d; want %v and 3", err, code, errWrong)
	}
	data := must(os.ReadFile(output))(t)
	cells, err := readCells(data)
	if err != nil || len(cells) != 1 {
		t.Fatal(cells, err)
	}
	for _, w := range cells[0].Ways {
		lied := slices.Contains([]string{alltoall2, isend2, alltoall2Uncoded, isend2Uncoded}, w.Name)
		if (w.Wrong > 0) != lied {
			t.Errorf("%s: %d wrong results", w.Name, w.Wrong)
		}
	}
}

// measureHere measures with k ranks of this process; the last one lies if told to.
func measureHere(t *testing.T, k int, args []string, lies bool) error {
	t.Helper()
	return run(t, k, func(r *thread) error {
		s, err := parse(args)
		if err != nil {
			return err
		}
		r.lies = lies && r.Rank() == k-1
		return s.measureAll(t.Context(), r, Cell{MPI: "none"})
	})
}

// TestFlags refuses bad flags with exit code 2 and says which.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--sizes 64KiB,1KiB", "ascending"},
		{"--sizes 3GiB", "below 2 GiB"},
		{"--matrices nonsense", "nonsense"},
		{"--pauses soon", "--pauses"},
		{"--peers gather", "allgather, ring"},
		{"--raw 10.0.0.1", "--raw"},
		{"--runs 0", "--runs"},
		{"more", "arguments"},
	} {
		_, err := parse(strings.Fields(c.args))
		var b bytes.Buffer
		if code := exitCode(&b, err); code != 2 || !strings.Contains(b.String(), c.want) {
			t.Errorf("%s: exit code %d, %q; want 2 and %q", c.args, code, b.String(), c.want)
		}
	}
	if _, err := parse([]string{"-h"}); !errors.Is(err, flag.ErrHelp) || exitCode(io.Discard, err) != 2 {
		t.Errorf("-h: %v", err)
	}
	if err := measureHere(t, 3, []string{"--sizes", "1KiB"}, false); exitCode(io.Discard, err) != 2 {
		t.Errorf("1 KiB in 3 slices: %v", err)
	}
}

// TestBound compares the bound with figures worked out by hand.
func TestBound(t *testing.T) {
	s := &settings{bitsPerSecond: 100e6, delay: 1e6}
	// 2·7/8 MiB at 94.5 Mbit/s and 2 ms
	if got := s.bound(8, 1<<20); got < 0.1573 || got > 0.1574 {
		t.Errorf("the bound is %v s, want 0.1573", got)
	}
	s.links.Slower = "7:0.5" // 2 MiB in place of 2·7/8
	if got := s.bound(8, 1<<20); got < 0.1795 || got > 0.1796 {
		t.Errorf("the bound with a slow link is %v s, want 0.1795", got)
	}
	if got := new(settings).bound(8, 1<<20); got != 0 {
		t.Errorf("the bound without a rate is %v", got)
	}
}

// must returns a value that comes without an error, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
