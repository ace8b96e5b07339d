//go:build mpi && !linux

package mpi

import "runtime"

// yield is [transport.Host].Yield.
func yield() { runtime.Gosched() }
