//go:build mpi

package mpi

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// engine is this process's MPI. Its lock is held for every call.
var engine struct {
	sync.Mutex
	started   bool
	anyThread bool
	driver    chan func() // what the one thread is to call, where not any may
	open      map[*Endpoint]bool
	looked    atomic.Int64 // when an endpoint was last looked after, in ns
	keeper    chan struct{}
}

// call calls f while nobody else calls MPI.
func call(f func()) {
	engine.Lock()
	defer engine.Unlock()
	if engine.anyThread || engine.driver == nil {
		f()
		return
	}
	done := make(chan struct{})
	engine.driver <- func() {
		defer close(done)
		f()
	}
	<-done
}

// keepEvery is how often the keeper looks after endpoints for which nobody waits.
const keepEvery = 2 * time.Millisecond

// keep looks after all endpoints while their users compute, so that what is under way
// goes on and the questions of others are answered.
func keep(stop <-chan struct{}) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if time.Since(time.Unix(0, engine.looked.Load())) < keepEvery {
			continue
		}
		call(func() {
			for e := range engine.open {
				e.look()
			}
			if len(engine.open) == 0 { // what was sent may still be on its way
				progress()
			}
		})
	}
}

// start starts MPI where it is not started. A thread of its own does it, and is the one
// that calls MPI where the library wants a single one.
func start() error {
	engine.Lock()
	defer engine.Unlock()
	if engine.started {
		return nil
	}
	failed := make(chan error)
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		anyThread, err := initialize()
		engine.anyThread = anyThread
		failed <- err
		if err != nil {
			return
		}
		for f := range calls {
			f()
		}
	}()
	if err := <-failed; err != nil {
		return err
	}
	begin(calls)
	return nil
}

// begin notes that MPI is started. The caller holds the lock.
func begin(calls chan func()) {
	engine.started, engine.driver = true, calls
	engine.open = map[*Endpoint]bool{}
	engine.keeper = make(chan struct{})
	go keep(engine.keeper)
}

// Init starts MPI, unless that was done, and returns this process's rank of a duplicate of
// MPI_COMM_WORLD. All processes of the job call it. [Finalize] ends MPI.
func Init() (*Endpoint, error) {
	if err := start(); err != nil {
		return nil, err
	}
	return newEndpoint(nil)
}

// Dup returns this process's rank of a duplicate of a communicator, given by its Fortran
// handle (MPI_Comm_c2f). All its processes call it. MPI is started.
func Dup(handle int) (*Endpoint, error) {
	if err := start(); err != nil {
		return nil, err
	}
	return newEndpoint(&handle)
}

// Drive calls f and lets this thread, which is the one that started MPI, call MPI for it
// where the library wants no other. It is for what a C program calls: before it no
// other function of this package may be called.
func Drive(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	engine.Lock()
	if engine.started && engine.anyThread {
		engine.Unlock()
		return f()
	}
	anyThread, err := initialize()
	if err != nil {
		engine.Unlock()
		return err
	}
	engine.anyThread = anyThread
	calls := make(chan func())
	if !engine.started {
		begin(calls)
	}
	engine.driver = calls
	engine.Unlock()
	if anyThread {
		return f()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	for {
		select {
		case g := <-calls:
			g()
		case err := <-done:
			return err
		}
	}
}

// Finalize ends MPI, when all endpoints are closed. All processes of the job call it.
func Finalize() error {
	engine.Lock()
	if !engine.started {
		engine.Unlock()
		return nil
	}
	close(engine.keeper)
	if len(engine.open) > 0 {
		engine.Unlock()
		return errors.New("mpi: Finalize with endpoints that are not closed")
	}
	calls := engine.driver
	engine.Unlock()
	failed := make(chan error)
	calls <- func() { failed <- finalize() } // the thread that started it
	return <-failed
}

// AbortJob ends all processes of the job, this one with the exit code. It does not return.
func AbortJob(code int) { abortJob(code) }
