package tcp

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"volley/transport"
)

// unanswered returns an address whose kernel does not answer those who would connect, as behind a firewall that drops
// packets: its queue is full.
func unanswered(t *testing.T) string {
	t.Helper()
	at, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { syscall.Close(at) })
	must(t, errors.Join(syscall.Bind(at, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(at, 0)))
	name, err := syscall.Getsockname(at)
	must(t, err)
	address := fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)
	for range 4 {
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Skip("this kernel answers though a queue is full")
	return ""
}

// against returns a rank whose peer, the other one of two, has that address.
func against(t *testing.T, rank int, peer string, limits Patience) *Endpoint {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addresses := []string{peer, peer}
	addresses[rank] = at.Addr().String()
	e := Serve(at, nil, limits, nil).Join(rank, addresses, "test")
	t.Cleanup(func() { member{e}.Close() })
	return e
}

// TestFirewall has packets to a rank dropped: who cannot connect says so long before it gives the rank up, and what to
// open. Where a kernel refuses, or there is no such name, it says that.
func TestFirewall(t *testing.T) {
	t.Parallel()
	port := func(address string) string { _, port, _ := net.SplitHostPort(address); return port }
	dropped := unanswered(t)
	limits := Patience{Turn: time.Millisecond, Dial: 50 * time.Millisecond, Asks: 2, Abort: time.Millisecond, Close: time.Millisecond}
	for _, c := range []struct {
		rank       int
		peer, want string
	}{
		{1, dropped, "rank 0, at " + dropped + ", is gone or cannot be reached from rank 1, at OWN: "},
		{0, dropped, "rank 1, at " + dropped + ", is gone or cannot be reached from rank 0, at OWN: dial tcp " + dropped + ": connect: connection timed out; if it runs, open TCP port " + port(dropped) + " of 127.0.0.1 for 127.0.0.1"},
		{0, "127.0.0.1:1", "rank 1, at 127.0.0.1:1, is gone or cannot be reached from rank 0, at OWN: dial tcp 127.0.0.1:1: connect: connection refused; if it runs, open TCP port 1 of 127.0.0.1 for 127.0.0.1"},
		{0, "host.invalid:1", "rank 1, at host.invalid:1, is gone or cannot be reached from rank 0, at OWN: dial tcp: lookup host.invalid"},
	} {
		e := against(t, c.rank, c.peer, limits)
		err := transport.Receive(t.Context(), e, 1-c.rank, transport.Tag{}, make([]byte, 1))
		want := strings.ReplaceAll(c.want, "OWN", e.addresses[c.rank])
		if aborted := new(transport.AbortError); !errors.As(err, &aborted) || !strings.HasPrefix(aborted.Cause.Error(), want) {
			t.Errorf("%s: %v, want %s", c.peer, err, want)
		}
		if unreached := new(UnreachedError); !errors.As(err, &unreached) || unreached.Source != e.addresses[c.rank] || unreached.Target != c.peer {
			t.Errorf("%s: %+v", c.peer, unreached)
		}
	}
}

// TestOneWay has packets dropped in one direction: the pair is connected in the other one.
func TestOneWay(t *testing.T) {
	for blind := range 2 {
		t.Run(fmt.Sprint("rank ", blind), func(t *testing.T) { t.Parallel(); oneWay(t, blind) })
	}
}

func oneWay(t *testing.T, blind int) {
	limits := Patience{Turn: time.Millisecond, Asks: 2, Abort: time.Millisecond, Close: time.Millisecond}
	dropped, listeners, addresses := unanswered(t), make([]*Listener, 2), make([]string, 2)
	for r := range 2 {
		at, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		listeners[r], addresses[r] = Serve(at, nil, limits, nil), at.Addr().String()
	}
	run := make([]*Endpoint, 2)
	for r, l := range listeners {
		table := slices.Clone(addresses)
		if r == blind {
			table[1-r] = dropped
		}
		run[r] = l.Join(r, table, "test")
		t.Cleanup(func() { member{run[r]}.Close() })
	}
	for round := range 2 {
		if round > 0 {
			time.Sleep(3500 * time.Millisecond) // in which a dial fails
		}
		var both sync.WaitGroup
		for r, e := range run {
			both.Go(func() {
				q := e.NewQueue()
				q.Post(&transport.Transfer{Rank: 1 - r, Tag: transport.Tag{Round: round}, Parts: [][]byte{{1}}},
					&transport.Transfer{Rank: 1 - r, Tag: transport.Tag{Round: round}, Parts: [][]byte{{0}}, Receive: true})
				for range 2 {
					if _, err := q.Wait(t.Context()); err != nil {
						t.Errorf("rank %d does not reach the other; rank %d: %v", blind, r, err)
						return
					}
				}
			})
		}
		both.Wait()
	}
}
