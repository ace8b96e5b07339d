//go:build !linux

package sharedmemory

// Create is for Linux.
func Create(int) (*Memory, Name, error) { return nil, Name{}, ErrUnsupported }

// Open is for Linux.
func Open(Name, int) (*Memory, error) { return nil, ErrUnsupported }

// Opened does nothing.
func (m *Memory) Opened() {}

// Unmap does nothing.
func (m *Memory) Unmap() {}
