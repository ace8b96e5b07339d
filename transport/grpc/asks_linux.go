package grpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// asks has the kernel give up a connection once so many packets, two or more, got no answer: three take 3 to 7 s.
func asks(c syscall.RawConn, packets int) (err error) {
	controlled := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_SYNCNT, packets-1)
	})
	if controlled != nil {
		return controlled
	}
	return err
}
