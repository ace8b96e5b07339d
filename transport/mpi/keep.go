//go:build mpi

package mpi

/*
#include "keep.h"
#include "arrive.h"
*/
import "C"

// kept are the arrivals that were given up, by the attribute of their communicators, until these are freed. The engine's lock
// guards them, or that nobody else calls MPI.
var kept = map[int]*arrival{}

// lastKept is the attribute given last.
var lastKept int

// keptOf returns the attribute of a communicator, or 0. The caller holds the lock.
func keptOf(handle int) (int, error) {
	var id C.int
	err := failed("MPI_Comm_get_attr", C.volley_kept(C.MPI_Fint(handle), &id))
	return int(id), err
}

// keptArrival returns the arrival that was given up at a communicator, or a new one. The caller holds the lock.
func keptArrival(handle int) (*arrival, error) {
	id, err := keptOf(handle)
	if a := kept[id]; a != nil || err != nil {
		return a, err
	}
	var code C.int
	a := &arrival{c: C.volley_arrive(C.MPI_Fint(handle), &code)}
	return a, failed("the communicator's size", code)
}

// keepArrival keeps an arrival that was given up. The caller holds the lock.
func keepArrival(handle int, a *arrival) error {
	id, err := keptOf(handle)
	if id == 0 && err == nil {
		lastKept++
		id, err = lastKept, failed("MPI_Comm_set_attr", C.volley_keep(C.MPI_Fint(handle), C.int(lastKept)))
	}
	kept[id] = a
	return err
}

// forgetArrival forgets the arrival at a communicator, which has come to its end. The caller holds the lock.
func forgetArrival(handle int) error {
	id, err := keptOf(handle)
	delete(kept, id)
	return err
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
	delete(kept, int(id))
}
