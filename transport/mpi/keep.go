//go:build mpi

package mpi

/*
#include "keep.h"
*/
import "C"

import "fmt"

// kept are the endpoints that later calls of [Drive] use again, by the attribute of the communicators
// that they are of. The engine's lock guards them, or that nobody else calls MPI.
var kept = map[int]*Endpoint{}

// lastKept is the attribute of the endpoint kept last.
var lastKept int

// keptEndpoint returns the endpoint that is kept of a communicator, or a new one that is kept.
func keptEndpoint(handle int) (e *Endpoint, err error) {
	var id C.int
	call(func() {
		err = failed("MPI_Comm_get_attr", C.volley_kept(C.MPI_Fint(handle), &id))
		if e = kept[int(id)]; e == nil {
			return
		}
		if e.isOpen(true); e.abort != nil {
			err = fmt.Errorf("an earlier call on this communicator has failed: use a duplicate of it (%v)", e.abort)
		}
	})
	if e != nil || err != nil {
		return e, err
	}
	if e, err = newEndpoint(&handle, whole, 0); err != nil {
		return nil, err
	}
	call(func() {
		lastKept++
		kept[lastKept] = e
		err = failed("MPI_Comm_set_attr", C.volley_keep(C.MPI_Fint(handle), C.int(lastKept)))
	})
	return e, err
}

// leave ends the use of an endpoint that is kept. One that has failed stays, too: other ranks may hear of
// it only in their next call, and would wait for ever in another duplicate.
func (e *Endpoint) leave() {
	e.drain()
	call(func() { e.isOpen(false) })
}

// beforeFinalize has MPI_Finalize wait for what [Begin] has begun.
func beforeFinalize() (err error) {
	call(func() { err = failed("MPI_Comm_set_attr", C.volley_before_finalize()) })
	return err
}

//export volleyFinish
func volleyFinish() { begun.Wait() }

//export volleyForget
func volleyForget(id C.int) {
	engine.Lock()
	defer engine.Unlock()
	e := kept[int(id)]
	delete(kept, int(id))
	e.close()
}
