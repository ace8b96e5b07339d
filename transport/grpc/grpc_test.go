package grpc

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"volley/internal/race"
	"volley/transport"
	"volley/transport/transporttest"
)

// member is a rank whose Close closes its listener as well.
type member struct {
	*Endpoint
}

func (m member) Close() error {
	err := m.Endpoint.Close()
	m.listener.Close()
	return err
}

// newRun returns the ranks of a run on loopback.
func newRun(t testing.TB, n int, security *tls.Config) []transport.Transport {
	listeners, addresses := make([]*Listener, n), make([]string, n)
	for r := range n {
		at, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[r], addresses[r] = Serve(at, n, security), at.Addr().String()
	}
	run := make([]transport.Transport, n)
	for r, l := range listeners {
		run[r] = member{l.Join(r, addresses, "test")}
	}
	return run
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport { return newRun(t, n, nil) })
}

// TestManyRanks connects all pairs of 64 ranks.
func TestManyRanks(t *testing.T) {
	c, n := transporttest.Cases()[0], 64
	if race.Enabled {
		n = 16 // 2,016 handshakes take it long
	}
	var ranks sync.WaitGroup
	for _, e := range newRun(t, n, nil) {
		ranks.Go(func() {
			if err := c.Run(t.Context(), e); err != nil {
				t.Errorf("rank %d: %v", e.Rank(), err)
			}
		})
	}
	ranks.Wait()
}

// TestInquire asks a rank that waits, one that does not, and one that has never been connected.
func TestInquire(t *testing.T) {
	run := newRun(t, 3, nil)
	defer func() {
		for _, e := range run {
			e.Close()
		}
	}()
	waiting, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		transport.Receive(waiting, run[2], 1, transport.Tag{}, []byte{0})
		close(ended)
	}()
	for whom, since := -1, time.Duration(0); whom != 1; {
		var err error
		if whom, since, err = run[0].(transport.Inquirer).Inquire(t.Context(), 2); err != nil || since < 0 {
			t.Fatal(err)
		}
	}
	if whom, _, err := run[2].(transport.Inquirer).Inquire(t.Context(), 1); whom != -1 || err != nil {
		t.Errorf("rank 1 waits for %d, %v", whom, err)
	}
	stop()
	<-ended
}
