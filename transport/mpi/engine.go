//go:build mpi

package mpi

// #include "calls.h"
import "C"

import (
	"cmp"
	"errors"
	"fmt"
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
	multiple  bool        // threads, at once
	drives    int         // calls of a C program under way, or 1 after Init
	driver    chan func() // what the one thread is to call, where not any may
	open      map[*Endpoint]bool
	lost      []*Endpoint // closed ones: MPI may use their memory at any time

	progressed  atomic.Int64 // when an endpoint last made progress, in ns
	wanted      atomic.Int32 // how many goroutines want the lock
	asleep      atomic.Bool  // whoever has the lock may sleep
	waits       atomic.Int32 // under way
	endpoints   atomic.Int32 // that are open
	endProgress func()
}

// call calls f while nobody else calls MPI.
func call(f func()) {
	engine.wanted.Add(1)
	if engine.asleep.Load() {
		wake()
	}
	engine.Lock()
	engine.wanted.Add(-1)
	defer engine.Unlock()
	if engine.anyThread {
		f()
		return
	}
	finished := make(chan struct{})
	engine.driver <- func() {
		defer close(finished)
		f()
	}
	<-finished
}

// How often endpoints make progress in the background where nobody waits, and where somebody does. Waking up is not
// cheap: the runtime looks after a process that does, every 20 µs for a while.
const (
	progressEvery = 5 * time.Millisecond
	progressIdle  = 50 * time.Millisecond
)

// progressAll has all endpoints make progress while their users compute, until the function it returns is called.
func progressAll() (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(progressEvery)
		defer timer.Stop()
		for interval := progressEvery; ; timer.Reset(interval) {
			select {
			case <-stop:
				return
			case <-timer.C:
			}
			waits := engine.waits.Load() > 0
			if interval = progressEvery; waits {
				interval = progressIdle
			}
			// A wait polls for its endpoint. Where that is the only one, it is not to be disturbed.
			if engine.endpoints.Load() == 1 && (waits || time.Since(time.Unix(0, engine.progressed.Load())) < progressEvery) {
				continue
			}
			call(func() {
				for e := range engine.open {
					e.progress()
				}
				if len(engine.open) == 0 { // what was sent may still be on its way
					progressWorld()
				}
			})
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// start starts MPI unless it is started, in the thread that is to call MPI where the library wants a single one.
func start() error {
	engine.Lock()
	started := engine.started
	engine.Unlock()
	if started {
		return nil
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		calls, err := engage()
		failed <- err
		for f := range calls {
			f()
		}
	}()
	return <-failed
}

// isOpen notes that an endpoint is open, or no longer is. The caller holds the lock.
func (e *Endpoint) isOpen(open bool) {
	if delete(engine.open, e); open {
		engine.open[e] = true
	}
	engine.endpoints.Store(int32(len(engine.open)))
}

// Init starts MPI if need be, and returns this process's rank of a duplicate of MPI_COMM_WORLD. All processes call it.
func Init() (*Endpoint, error) {
	if err := start(); err != nil {
		return nil, err
	}
	return newEndpoint(C.volley_world(), 0, 0)
}

// Drive calls f with this process's rank of a duplicate of a communicator, which is given by its Fortran handle
// (MPI_Comm_c2f). All its processes call it. It is for what a C program calls that has started MPI: while f runs, it is
// this thread that calls MPI where the library wants no other, and afterwards nothing of this package does. With
// MPI_THREAD_MULTIPLE several threads may call it at once.
//
// Where not all processes have come within the timeout, it returns a [MissingError]; 0 is no bound. What MPI has begun
// for that stays with the communicator, and the next call goes on there.
func Drive(handle int, timeout time.Duration, f func(*Endpoint) error) error {
	if err := check(handle); err != nil {
		return err
	}
	return drive(func() error {
		e, err := arrivedEndpoint(handle, timeout)
		if err != nil {
			return err
		}
		return errors.Join(f(e), e.Close())
	})
}

// Open is [Drive] whose endpoint stays open where f returns no error: [Endpoint.Drive] goes on with it.
func Open(handle int, timeout time.Duration, f func(*Endpoint) error) error {
	if err := check(handle); err != nil {
		return err
	}
	return drive(func() error {
		e, err := arrivedEndpoint(handle, timeout)
		if err != nil {
			return err
		}
		if err = f(e); err != nil {
			return errors.Join(err, e.Close())
		}
		e.leave()
		return nil
	})
}

// Drive calls f as the function [Drive] does, with the endpoint that [Open] has left open. F may close it.
func (e *Endpoint) Drive(f func() error) error {
	if err := running(); err != nil {
		return err
	}
	return drive(func() error {
		call(func() { e.isOpen(true) })
		err := f()
		if !e.closed {
			e.leave()
		}
		return err
	})
}

// drive calls f while MPI's calls are made, by this thread where the library wants no other.
func drive(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	calls, err := engage()
	if err != nil {
		return err
	}
	finished := make(chan error, 1)
	go func() {
		err := f()
		disengage() // while its calls are still made
		finished <- err
	}()
	for {
		select {
		case g := <-calls:
			g()
		case err := <-finished:
			return err
		}
	}
}

// Begin is [Drive] beside the caller, and needs MPI_THREAD_MULTIPLE. It returns when all processes of the communicator
// have called it. Then f runs, and after it done. Open MPI's MPI_Finalize waits for that. MPICH's takes no locks: call it
// afterwards.
func Begin(handle int, timeout time.Duration, f func(*Endpoint) error, report func(error)) error {
	if err := check(handle); err != nil {
		return err
	}
	if _, multiple, err := initialize(); err != nil || !multiple {
		return cmp.Or(err, error(ErrOneThread))
	}
	if _, err := engage(); err != nil {
		return err
	}
	err := beforeFinalize()
	var e *Endpoint
	if err == nil {
		e, err = arrivedEndpoint(handle, timeout)
	}
	if err != nil {
		disengage()
		return err
	}
	begun.Add(1)
	go func() {
		defer begun.Done()
		err := errors.Join(f(e), e.Close())
		disengage()
		report(err)
	}()
	return nil
}

// begun are the calls of [Begin] that are not over.
var begun sync.WaitGroup

// turn is held while the engine is started or ends for C programs.
var turn sync.Mutex

// engage starts the engine, if no other call of a C program has, and returns what this thread is to call.
func engage() (calls chan func(), err error) {
	turn.Lock()
	defer turn.Unlock()
	engine.Lock()
	defer engine.Unlock()
	if engine.started && !engine.multiple {
		return nil, errors.New("mpi: busy with another call")
	}
	if engine.drives == 0 {
		if engine.anyThread, engine.multiple, err = initialize(); err != nil {
			return nil, err
		}
		calls = make(chan func())
		engine.started, engine.driver, engine.open = true, calls, map[*Endpoint]bool{}
		engine.endProgress = progressAll()
	}
	engine.drives++
	return calls, nil
}

// disengage ends what engage has begun, after the last call.
func disengage() {
	turn.Lock()
	defer turn.Unlock()
	engine.Lock()
	engine.drives--
	last := engine.drives == 0
	engine.Unlock()
	if !last {
		return
	}
	engine.endProgress()
	engine.Lock()
	engine.started = false
	engine.Unlock()
}

// Finalize ends MPI, when all endpoints are closed. All processes of the job call it.
func Finalize() error {
	engine.Lock()
	if !engine.started {
		engine.Unlock()
		return nil
	}
	remaining := len(engine.open)
	if remaining == 0 {
		engine.started, engine.drives = false, 0
	}
	engine.Unlock()
	if remaining > 0 {
		return fmt.Errorf("mpi: Finalize with %d endpoints that are not closed", remaining)
	}
	engine.endProgress()
	failed := make(chan error)
	engine.driver <- func() { failed <- finalize() } // the thread that started it
	return <-failed
}

// AbortJob ends all processes of the job, this one with the exit code. It does not return.
func AbortJob(code int) { abortJob(code) }
