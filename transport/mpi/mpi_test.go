//go:build mpi

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"volley"
	"volley/collective"
	"volley/field"
	"volley/matrix"
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
		clear(e.sameMachine)
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

// TestNextPoller has three waits at each rank, and two of them end in one poll. The third polls then, also where the
// one that polled chose the other that ended.
func TestNextPoller(t *testing.T) {
	e := group(t)
	defer e.Close()
	if e.Size() < 2 {
		t.Skip("needs more ranks")
	}
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Limit)
	defer cancel()
	next, prev := (e.Rank()+1)%e.Size(), (e.Rank()+e.Size()-1)%e.Size()
	for round := range 20 { // the choice is random
		waits, sends := make([]chan error, 3), e.NewQueue().(*queue)
		tag := func(port int) transport.Tag { return transport.Tag{Round: round, Port: port} }
		start := func(port int) {
			sends.underWay++
			e.start(sends, &transport.Transfer{Rank: next, Tag: tag(port), Parts: [][]byte{{1}}})
			e.post()
		}
		for port := range waits {
			waits[port] = make(chan error, 1)
			go func() { waits[port] <- transport.Receive(ctx, e, prev, tag(port), []byte{0}) }()
		}
		time.Sleep(5 * time.Millisecond) // all of them wait
		e.Exclusive(func() {
			start(0)
			start(1)
			time.Sleep(10 * time.Millisecond) // both messages of prev come before the next poll
		})
		for port, wait := range waits {
			if port == 2 {
				e.Exclusive(func() { start(2) })
			}
			if err := <-wait; err != nil {
				t.Fatalf("rank %d, round %d, port %d: %v", e.Rank(), round, port, err)
			}
		}
		for range waits {
			if _, err := sends.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestInquireAborted asks after an abort: who timed out at the same time is not to be waited for.
func TestInquireAborted(t *testing.T) {
	e := group(t)
	defer e.Close()
	if e.Size() < 2 {
		t.Skip("needs more ranks")
	}
	e.Abort(errors.New("stopped"))
	if whom, err := e.Inquire(context.Background(), (e.Rank()+1)%e.Size()); whom != -1 || !errors.As(err, new(*transport.AbortError)) {
		t.Errorf("rank %d: it waits for %d, %v", e.Rank(), whom, err)
	}
}

// TestPollFails has a call of MPI fail at rank 0: all others hear why.
func TestPollFails(t *testing.T) {
	e := group(t)
	defer e.Close()
	if e.Rank() == 0 {
		call(func() { e.went(errors.New("broken")) })
	}
	_, err := e.NewQueue().Wait(t.Context())
	ended := new(*transport.AbortError)
	if !errors.As(err, ended) || (*ended).Rank != 0 || (*ended).Cause.Error() != "broken" {
		t.Errorf("rank %d: %v", e.Rank(), err)
	}
}

// TestShare has ranks share memory, write to their own parts, and read those of others.
func TestShare(t *testing.T) {
	e := group(t)
	defer e.Close()
	if apart {
		t.Skip("on several machines")
	}
	c, late := collective.New(e, time.Minute), func(rank int) error { return fmt.Errorf("rank %d is late", rank) }
	for _, bytes := range []int{1, 100_000} {
		w, err := c.Share(t.Context(), bytes)
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 20 {
			w.Parts[e.Rank()][0] = byte(turn + e.Rank())
			if turn%e.Size() == e.Rank() {
				time.Sleep(time.Millisecond) // the others sleep until it comes
			}
			for range 2 { // to have written, and to have read
				if other, err := w.Meet(t.Context(), e.Host(), uint64(turn), time.Minute, late); err != nil || other >= 0 {
					t.Fatal(other, err)
				}
				for rank, part := range w.Parts {
					if part[0] != byte(turn+rank) {
						t.Fatalf("rank %d reads %d of rank %d in turn %d", e.Rank(), part[0], rank, turn)
					}
				}
			}
			if _, err := w.Meet(t.Context(), e.Host(), 0, time.Minute, late); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
	}
}

// TestHosts encodes at ranks that believe they are on two machines, in turns.
func TestHosts(t *testing.T) {
	e := group(t)
	defer e.Close()
	if e.Size() < 4 || e.Size()%2 > 0 || apart {
		t.Skip("wants an even number of ranks, 4 or more, on one machine")
	}
	hosts := make([][]int, 2)
	for r := range e.Size() {
		hosts[r%2] = append(hosts[r%2], r)
	}
	e.host.Hosts, e.host.Local = hosts, e.Rank()%2
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	a, err := matrix.Random(f, e.Size(), e.Size(), 1)
	if err != nil {
		t.Fatal(err)
	}
	packet := func(rank int) []byte { return bytes.Repeat([]byte{byte(rank + 1)}, 3_000_000) }
	got, report, err := volley.Encode(t.Context(), e, a, packet(e.Rank()))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, len(got))
	var coefs []field.Element
	var packets [][]byte
	for rank := range e.Size() {
		coefs, packets = append(coefs, a.At(rank, e.Rank())), append(packets, packet(rank))
	}
	f.Combine(want, coefs, packets)
	if !bytes.Equal(got, want) || report.Pieces != 2 || !report.Verified {
		t.Errorf("rank %d: a wrong packet, or not by slices: %+v", e.Rank(), report)
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
