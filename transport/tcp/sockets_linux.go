package tcp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endUnanswered has the kernel give up a connection once so many packets, two or more, got no answer: three take 3 to 7 s.
func endUnanswered(c syscall.RawConn, packets int) error { return set(c, unix.TCP_SYNCNT, packets-1) }

// endUnaccepted has the kernel end a connection whose other side has not accepted data for so long.
func endUnaccepted(c *net.TCPConn, limit time.Duration) {
	if raw, err := c.SyscallConn(); err == nil {
		set(raw, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds())) // else it takes longer
	}
}

func set(c syscall.RawConn, option, value int) (err error) {
	controlled := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, option, value) })
	if controlled != nil {
		return controlled
	}
	return err
}
