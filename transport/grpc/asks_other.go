//go:build !linux

package grpc

import "syscall"

// asks leaves to the kernel how often it asks.
func asks(syscall.RawConn, int) error { return nil }
