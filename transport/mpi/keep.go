//go:build mpi

package mpi

/*
#include "keep.h"
#include "arrive.h"
*/
import "C"

import (
	"fmt"
	"time"
)

// A keeping is what is kept with a communicator until that is freed: the endpoint that later calls of [Drive] use again,
// and an arrival that was given up.
type keeping struct {
	endpoint *Endpoint
	arrival  *arrival
}

// kept are by the attribute of the communicators. The engine's lock guards them, or that nobody else calls MPI.
var kept = map[int]*keeping{}

// lastKept is the attribute given last.
var lastKept int

// keptOf returns what is kept with a communicator, or nil. The caller holds the lock.
func keptOf(handle int) (*keeping, error) {
	var id C.int
	err := failed("MPI_Comm_get_attr", C.volley_kept(C.MPI_Fint(handle), &id))
	return kept[int(id)], err
}

// keep returns what is kept with a communicator from now on. The caller holds the lock.
func keep(handle int) (*keeping, error) {
	k, err := keptOf(handle)
	if k != nil || err != nil {
		return k, err
	}
	lastKept++
	k = new(keeping)
	kept[lastKept] = k
	return k, failed("MPI_Comm_set_attr", C.volley_keep(C.MPI_Fint(handle), C.int(lastKept)))
}

// keptEndpoint returns the endpoint that is kept of a communicator, or a new one that is kept.
func keptEndpoint(handle int, timeout time.Duration) (e *Endpoint, err error) {
	call(func() {
		var k *keeping
		if k, err = keptOf(handle); err != nil || k == nil || k.endpoint == nil {
			return
		}
		e = k.endpoint
		if e.isOpen(true); e.abort != nil {
			err = fmt.Errorf("an earlier call on this communicator has failed: use a duplicate of it (%v)", e.abort)
		}
	})
	if e != nil || err != nil {
		return e, err
	}
	if e, err = arrivedEndpoint(handle, timeout); err != nil {
		return nil, err
	}
	call(func() {
		var k *keeping
		if k, err = keep(handle); err == nil {
			k.endpoint = e
		}
	})
	return e, err
}

// keptArrival returns the arrival that was given up at a communicator, or a new one. The caller holds the lock.
func keptArrival(handle int) (*arrival, error) {
	k, err := keptOf(handle)
	if err != nil {
		return nil, err
	}
	if k != nil && k.arrival != nil {
		return k.arrival, nil
	}
	var code C.int
	a := &arrival{c: C.volley_arrive(C.MPI_Fint(handle), &code)}
	return a, failed("the communicator's size", code)
}

// keepArrival keeps an arrival that was given up, or forgets it: nil. The caller holds the lock.
func keepArrival(handle int, a *arrival) error {
	k, err := keptOf(handle)
	if a != nil && err == nil {
		k, err = keep(handle)
	}
	if k != nil && err == nil {
		k.arrival = a
	}
	return err
}

// leave ends the use of an endpoint that is kept. One that has failed stays, too: other ranks may hear of
// it only in their next call, and would wait for ever in another duplicate.
func (e *Endpoint) leave() {
	e.drain()
	call(func() { e.isOpen(false) })
}

// Unfinished reports whether MPI may use memory of packets at any later time: transfers were under way when a group was aborted or
// given up.
func Unfinished() bool {
	engine.Lock()
	defer engine.Unlock()
	for _, e := range engine.lost {
		if e.active > 0 {
			return true
		}
	}
	for _, k := range kept {
		if e := k.endpoint; e != nil && e.abort != nil && e.active > 1 { // one is the control receive
			return true
		}
	}
	return false
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
	k := kept[int(id)]
	delete(kept, int(id))
	if k.endpoint != nil {
		k.endpoint.close()
	}
}
