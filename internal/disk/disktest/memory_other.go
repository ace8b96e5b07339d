//go:build !linux

package disktest

// InMemory does nothing here.
func InMemory() {}
