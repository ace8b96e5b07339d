package grpc

import (
	"crypto/tls"
	"net"
	"testing"

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
		listeners[r], addresses[r] = Serve(at, security), at.Addr().String()
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
