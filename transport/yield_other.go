//go:build !linux

package transport

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Yield is [Host].Yield where other ranks are other processes.
func Yield() { runtime.Gosched() }

// sleep takes a part of the time that was waited, so that it ends not much later than the wait.
func sleep(_ *atomic.Uint64, _ uint64, waited time.Duration) { time.Sleep(min(napMeeting, waited/6)) }

func wake(*atomic.Uint64) {}
