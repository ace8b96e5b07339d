//go:build mpi

package mpi

/*
#include <mpi.h>

extern void volleyForget(int);
extern void volleyFinish(void);

// volley_forget is called when a communicator is freed, or its attribute deleted; at MPI's end nothing can be freed.
static int volley_forget(MPI_Comm comm, int key, void *id, void *extra) {
	int ended = 0;
	MPI_Finalized(&ended);
	if (!ended) volleyForget((int)(long)id);
	return MPI_SUCCESS;
}

// volley_key is the key of the attribute that names an endpoint, which a duplicate does not have.
static int volley_key(int *key) {
	static int made = MPI_KEYVAL_INVALID;
	int rc = made != MPI_KEYVAL_INVALID ? MPI_SUCCESS : MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, volley_forget, &made, NULL);
	*key = made;
	return rc;
}

// volley_finish is called by MPI_Finalize, before anything else.
static int volley_finish(MPI_Comm comm, int key, void *value, void *extra) {
	volleyFinish();
	return MPI_SUCCESS;
}

static int volley_before_finalize(void) {
	static int key = MPI_KEYVAL_INVALID;
	if (key != MPI_KEYVAL_INVALID) return MPI_SUCCESS;
	int rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, volley_finish, &key, NULL);
	return rc == MPI_SUCCESS ? MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) : rc;
}

static int volley_kept(MPI_Fint comm, int *id) {
	int key, there = 0;
	void *value;
	int rc = volley_key(&key);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_get_attr(MPI_Comm_f2c(comm), key, &value, &there);
	*id = there ? (int)(long)value : 0;
	return rc;
}

static int volley_keep(MPI_Fint comm, int id) {
	int key;
	int rc = volley_key(&key);
	return rc == MPI_SUCCESS ? MPI_Comm_set_attr(MPI_Comm_f2c(comm), key, (void *)(long)id) : rc;
}
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
