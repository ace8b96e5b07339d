//go:build mpi

package mpi

/*
#include "calls.h"
#include "arrive.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// A Misuse is an error of the caller, such as a communicator that cannot be used.
type Misuse string

func (m Misuse) Error() string { return string(m) }

// ExitCode returns that of wrong arguments.
func (Misuse) ExitCode() int { return 2 }

// ErrOneThread is the error of [Begin] where MPI was started for less than several threads at once.
const ErrOneThread Misuse = "MPI was started with less than MPI_THREAD_MULTIPLE: call MPI_Init_thread with it, and look at what it provides"

// check returns an error unless MPI runs and the handle is that of a communicator with one group. MPI itself would end
// the job, or have two groups work on different data.
func check(handle int) error { return misuse(C.volley_check(C.MPI_Fint(handle))) }

// running returns an error unless MPI runs.
func running() error { return misuse(C.volley_running()) }

func misuse(code C.int) error {
	switch code {
	case C.volley_early:
		return Misuse("MPI is not initialised: call MPI_Init or MPI_Init_thread before")
	case C.volley_late:
		return Misuse("MPI is finalised: make this call before MPI_Finalize")
	case C.volley_null:
		return Misuse("comm: MPI_COMM_NULL: only processes that belong to a communicator call this function")
	case C.volley_inter:
		return Misuse("comm: an intercommunicator, which has two groups: make one of them by MPI_Intercomm_merge")
	}
	return nil
}

// A MissingError says that not all processes of a communicator have come.
type MissingError struct {
	Rank, Size int
	Waited     time.Duration
	Missing    []int // as far as this process knows
	Come       bool  // all have come, but not all have waited
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("rank %d has waited %v for all %d processes of the communicator: ", e.Rank, e.Waited, e.Size)
	const again = "call again to go on waiting, or end the job"
	switch {
	case e.Come:
		return text + "all have called, but some had given up before this one came: they " + again
	case e.Missing == nil:
		return text + "rank 0 tells which are missing, unless it is missing itself: " + again
	}
	var list []string
	for _, r := range e.Missing {
		list = append(list, fmt.Sprint(r))
	}
	ranks, verb := "rank ", " has not called: "
	if len(list) > 1 {
		ranks, verb = "ranks ", " have not called: "
	}
	return text + ranks + strings.Join(list, ", ") + verb + again
}

// An arrival is how far this process has come in duplicating a communicator. One that is given up is kept with the
// communicator. The next call goes on there: MPI's call that is under way cannot be taken back.
type arrival struct {
	c    *C.volley_arrival
	step int // begun so far
}

// arrive duplicates a communicator when all its processes have come. No step takes longer than the timeout; 0 is none.
func arrive(handle int, timeout time.Duration) (g *communicator, err error) {
	run := call
	if engine.multiple {
		run = func(f func()) { f() } // other endpoints go on meanwhile
	}
	var a *arrival
	call(func() { a, err = keptArrival(handle) })
	if err != nil {
		return nil, err
	}
	comm := C.MPI_Fint(handle)
	steps := []func() C.int{
		func() C.int { return C.volley_come(a.c, comm) },
		func() C.int { return C.volley_copy(a.c, comm) },
		func() C.int {
			a.c.own = [2]C.long{C.long(machine()), C.long(runtime.GOMAXPROCS(0))}
			return C.volley_tell(a.c)
		},
	}
	for resumed := a.step > 0; a.step < len(steps) || resumed; resumed = false {
		if !resumed {
			code := C.int(0)
			run(func() { code = steps[a.step]() })
			if err := failed("duplicating the communicator", code); err != nil {
				return nil, err
			}
			a.step++
		}
		complete, err := a.wait(run, timeout)
		if err != nil {
			return nil, err
		}
		if !complete {
			call(func() { err = keepArrival(handle, a) })
			if err == nil {
				err = a.missing(timeout)
			}
			return nil, err
		}
	}
	call(func() {
		g = &communicator{comm: a.c.comm}
		if err = g.identify(); err == nil {
			g.neighbours(unsafe.Slice((*[2]C.long)(unsafe.Pointer(a.c.all)), g.size))
		}
		err = cmp.Or(err, forgetArrival(handle))
		C.volley_arrived(a.c)
	})
	return g, err
}

// wait waits until MPI's call is over. It polls for a while, and then ever more seldom.
func (a *arrival) wait(run func(func()), timeout time.Duration) (bool, error) {
	const spin, longest = time.Millisecond, time.Millisecond
	for begun := time.Now(); ; {
		var complete, code C.int
		waited := time.Since(begun)
		run(func() { code = C.volley_over(a.c, C.long(max(0, spin-waited)), &complete) })
		if err := failed("duplicating the communicator", code); err != nil || complete != 0 {
			return complete != 0, err
		}
		if waited = time.Since(begun); timeout > 0 && waited > timeout {
			return false, nil
		}
		sleep(min(longest, max(leastSleep, waited/6)))
	}
}

// missing returns the error of an arrival that is given up.
func (a *arrival) missing(timeout time.Duration) error {
	e := &MissingError{Rank: int(a.c.rank), Size: int(a.c.size), Waited: timeout, Come: a.step > 1}
	if a.c.size <= C.volley_few || a.c.rank == 0 {
		for r, came := range unsafe.Slice((*byte)(unsafe.Pointer(a.c.came)), int(a.c.size)) {
			if came == 0 {
				e.Missing = append(e.Missing, r)
			}
		}
		e.Come = e.Come || len(e.Missing) == 0
	}
	return e
}
