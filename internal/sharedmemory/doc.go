// Package sharedmemory makes memory that processes of one host, or ranks of one process, read and write together.
package sharedmemory

import "errors"

// A Handle is how others open the memory. They run as the same user, and see the process that made it.
type Handle struct {
	PID, Descriptor int
	Nonce           uint64 // at the start of the memory until it is opened: another file may be behind the descriptor
}

// ErrUnsupported says that the system has no such memory.
var ErrUnsupported = errors.New("sharedmemory: not on this system")

// Memory is mapped until Unmap.
type Memory struct {
	Data []byte // from a page on, zero where nobody has written
	file int
}
