//go:build !linux

package transport

import "runtime"

// Yield is [Host].Yield where other ranks are other processes.
func Yield() { runtime.Gosched() }
