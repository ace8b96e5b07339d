//go:build !linux

package disktest

// InMemory does nothing here.
func InMemory() {}

func (i *info) sys() any { return nil }
