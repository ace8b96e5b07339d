//go:build !linux

package transport

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Yield is [Host].Yield where other ranks are other processes.
func Yield() { runtime.Gosched() }

// sleep is a nap: here nothing tells of a rank that has come.
func sleep(_ *atomic.Uint64, _ uint64, waited time.Duration) { nap(waited) }

func wake(*atomic.Uint64) {}
