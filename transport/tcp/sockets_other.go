//go:build !linux

package tcp

import (
	"net"
	"syscall"
	"time"
)

// Here the kernel says how often it asks, and how long it waits.
func endUnanswered(syscall.RawConn, int) error { return nil }

func endUnaccepted(*net.TCPConn, time.Duration) {}
