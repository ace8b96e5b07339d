//go:build linux

package main

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// TestRawExchange exchanges slices of several lengths, short ones and such as no socket
// takes at once, between sockets of this process.
func TestRawExchange(t *testing.T) {
	const k = 5
	listeners, addresses := make([]net.Listener, k), make([]string, k)
	for i := range listeners {
		l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
		listeners[i], addresses[i] = l, l.Addr().String()
	}
	var all sync.WaitGroup
	for rank := range k {
		all.Go(func() {
			x, err := joinRaw(rank, listeners[rank], addresses)
			if err != nil {
				t.Error(err)
				return
			}
			for _, n := range []int{1, unacknowledged, 1 << 20} {
				out, in := make([]byte, k*n), make([]byte, k*n)
				for i := range out { // by sender, receiver and place
					out[i] = byte(rank + 10*(i/n) + i%n%251)
				}
				if err := x.exchange(out, in); err != nil {
					t.Error(err)
					return
				}
				for from := range k {
					want := make([]byte, n)
					if from != rank {
						for i := range want {
							want[i] = byte(from + 10*rank + i%251)
						}
					}
					if !bytes.Equal(in[from*n:][:n], want) {
						t.Errorf("%d bytes from rank %d to rank %d are wrong", n, from, rank)
					}
				}
			}
		})
	}
	all.Wait()
}
