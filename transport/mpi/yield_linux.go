//go:build mpi

package mpi

import "syscall"

// yield is [transport.Host].Yield: other ranks are other processes. Gosched would wake up another thread of this process, which
// looks for work on the core that the other rank wants.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
