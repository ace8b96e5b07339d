//go:build mpi

package mpi

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"volley/transport"
	"volley/transport/transporttest"
)

// Run it under mpirun; without it, it is a group of one.
func TestMain(m *testing.M) {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := Finalize(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// apart has every group think that its ranks are on different machines.
var apart bool

func group(t *testing.T) *Endpoint {
	t.Helper()
	e, err := Init()
	if err != nil {
		t.Fatal(err)
	}
	if apart {
		clear(e.here)
	}
	return e
}

func TestTransport(t *testing.T) {
	for _, c := range transporttest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			rank := group(t)
			if rank.Size() < c.MinRanks {
				rank.Close()
				t.Skip("needs more ranks")
			}
			if err := c.Run(t.Context(), rank); err != nil {
				t.Errorf("rank %d: %v", rank.Rank(), err)
			}
		})
	}
}

// TestFragments cuts messages into fragments of 1,000 bytes, and into none, as if each rank were
// on a machine of its own.
func TestFragments(t *testing.T) {
	defer func(n int) { fragmentBytes = n }(fragmentBytes)
	apart = true
	defer func() { apart = false }()
	for _, fragmentBytes = range []int{1000, 60 << 10, 1 << 30} {
		TestTransport(t)
	}
}

// TestInquire has a chain of waits, at whose end somebody does something else.
func TestInquire(t *testing.T) {
	e := group(t)
	defer e.Close()
	if e.Size() < 3 {
		t.Skip("needs more ranks")
	}
	tag := transport.Tag{Round: 1}
	switch last := e.Size() - 1; e.Rank() {
	case last: // busy
		time.Sleep(500 * time.Millisecond)
		if err := transport.Send(t.Context(), e, last-1, tag, []byte{1}); err != nil {
			t.Error(err)
		}
	default:
		if e.Rank() == 0 {
			time.AfterFunc(200*time.Millisecond, func() {
				for r := 1; r <= last; r++ {
					want := r + 1
					if r == last {
						want = -1
					}
					if got, d, err := e.Inquire(t.Context(), r); err != nil || got != want || r < last && d < 50*time.Millisecond {
						t.Errorf("rank %d waits for %d for %v, %v; want %d", r, got, d, err, want)
					}
				}
			})
		}
		if err := transport.Receive(t.Context(), e, e.Rank()+1, tag, []byte{0}); err != nil {
			t.Fatal(err)
		}
		if e.Rank() > 0 {
			if err := transport.Send(t.Context(), e, e.Rank()-1, tag, []byte{1}); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAbortAfterClose is without effect: there is nothing left to send by.
func TestAbortAfterClose(t *testing.T) {
	e := group(t)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e.Abort(errors.New("too late"))
	if e.controlSends > 0 || len(e.adding) > 0 {
		t.Errorf("rank %d has begun to send %d messages", e.Rank(), e.controlSends)
	}
}
