//go:build !linux

package sharedmemory

// Create is for Linux.
func Create(int) (*Memory, Handle, error) { return nil, Handle{}, ErrUnsupported }

// Open is for Linux.
func Open(Handle, int) (*Memory, error) { return nil, ErrUnsupported }

// Opened does nothing.
func (m *Memory) Opened() {}

// Unmap does nothing.
func (m *Memory) Unmap() {}
