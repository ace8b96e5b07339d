//go:build mpi && linux

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// unacknowledged is how much of a slice the raw exchange lets be on the way to one rank, in
// bytes: so K-1 senders together do not fill what the switch keeps for a receiver.
const unacknowledged = 16 << 10

// A rawExchange exchanges slices over plain TCP: all peers at once, by system calls, on one
// thread. It shows what the links allow.
type rawExchange struct {
	rank  int
	conns []*os.File // nil at the own rank
	fds   []int
}

// joinRaw connects this rank to all others. All ranks listen, at these addresses.
func joinRaw(rank int, l net.Listener, addresses []string) (*rawExchange, error) {
	k := len(addresses)
	x := &rawExchange{rank: rank, conns: make([]*os.File, k), fds: make([]int, k)}
	add := func(other int, c net.Conn) error {
		defer c.Close()
		file, err := c.(*net.TCPConn).File()
		if err != nil {
			return err
		}
		x.conns[other], x.fds[other] = file, int(file.Fd())
		return unix.SetNonblock(x.fds[other], true)
	}
	for other := range rank {
		c, err := net.DialTimeout("tcp", addresses[other], time.Minute)
		if err != nil {
			return nil, fmt.Errorf("raw exchange: rank %d: %w", other, err)
		}
		if err := binary.Write(c, binary.LittleEndian, int32(rank)); err != nil {
			return nil, fmt.Errorf("raw exchange: rank %d: %w", other, err)
		}
		if err := add(other, c); err != nil {
			return nil, err
		}
	}
	for range k - 1 - rank {
		c, err := l.Accept()
		if err != nil {
			return nil, fmt.Errorf("raw exchange: %w", err)
		}
		var other int32
		if err := binary.Read(c, binary.LittleEndian, &other); err != nil {
			return nil, fmt.Errorf("raw exchange: %s: %w", c.RemoteAddr(), err)
		}
		if int(other) <= rank || int(other) >= k || x.conns[other] != nil {
			return nil, fmt.Errorf("raw exchange: %s calls itself rank %d", c.RemoteAddr(), other)
		}
		if err := add(int(other), c); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// exchange sends slice j of out to rank j and receives slice j of in from it.
func (x *rawExchange) exchange(out, in []byte) error {
	k := len(x.fds)
	n := len(out) / k
	sent, got := make([]int, k), make([]int, k)
	for todo := 2 * (k - 1); todo > 0; {
		moved := false
		for d := 1; d < k; d++ {
			from, to := (x.rank-d+k)%k, (x.rank+d)%k
			if got[from] < n {
				m, err := unix.Read(x.fds[from], in[from*n+got[from]:(from+1)*n])
				switch {
				case err == nil && m == 0:
					err = io.ErrUnexpectedEOF
					fallthrough
				case err != nil && err != unix.EAGAIN && err != unix.EINTR:
					return fmt.Errorf("raw exchange: receive from rank %d: %w", from, err)
				case err == nil:
					moved = true
					if got[from] += m; got[from] == n {
						todo--
					}
				}
			}
			if sent[to] < n {
				queued, err := unix.IoctlGetInt(x.fds[to], unix.SIOCOUTQ)
				if err != nil {
					return fmt.Errorf("raw exchange: send to rank %d: %w", to, err)
				}
				most := min(n-sent[to], unacknowledged-queued)
				if most <= 0 {
					continue
				}
				m, err := unix.Write(x.fds[to], out[to*n+sent[to]:][:most])
				switch {
				case err == unix.EAGAIN || err == unix.EINTR:
				case err != nil:
					return fmt.Errorf("raw exchange: send to rank %d: %w", to, err)
				default:
					moved = true
					if sent[to] += m; sent[to] == n {
						todo--
					}
				}
			}
		}
		if !moved { // a sleep of Go's would be ten times as long
			unix.Nanosleep(&unix.Timespec{Nsec: 100_000}, nil)
		}
	}
	return nil
}
