package transport

import (
	"math"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Yield is [Host].Yield where other ranks are other processes. Gosched would wake up another thread of this process, which
// looks for work on the core that the other rank wants.
func Yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// sleep returns when a word may be another than was seen, as another process has called wake, or it has slept for long.
func sleep(word *atomic.Uint64, seen uint64, _ time.Duration) {
	const wait = 0 // FUTEX_WAIT, for 32 bits: where these are the high ones, they are always the same, and only wake counts
	timeout := syscall.NsecToTimespec(int64(napMeeting))
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wait, uintptr(uint32(seen)), uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// wake ends the sleep of all others that wait for a word.
func wake(word *atomic.Uint64) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), 1, math.MaxInt32, 0, 0, 0)
}
