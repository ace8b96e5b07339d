//go:build mpi

package main

// #include <stdlib.h>
// #include "volley.h"
import "C"

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"volley"
	"volley/collective"
	"volley/internal/exit"
	"volley/transport"
	"volley/transport/mpi"
)

// A region is memory of volley_alloc.
type region struct {
	data   unsafe.Pointer
	memory []byte
	window *transport.Window // nil: no other process reads it
	users  int               // encodes that are ready to use it
}

// regions are those that were not freed.
var regions struct {
	sync.Mutex
	list []*region
}

//export volleyAlloc
func volleyAlloc(comm C.MPI_Fint, bytes C.size_t, memory *unsafe.Pointer) C.int {
	if memory != nil {
		*memory = nil
	}
	return drive(comm, 0, func(e *mpi.Endpoint) error {
		err := length("bytes", bytes)
		if memory == nil {
			err = isNull("data")
		}
		if err != nil {
			return err
		}
		r, err := newRegion(context.Background(), e, bytes)
		if err != nil {
			return err
		}
		regions.Lock()
		defer regions.Unlock()
		regions.list = append(regions.list, r)
		*memory = r.data
		return nil
	})
}

// newRegion makes memory that all processes of a host share, or memory of this process only.
func newRegion(ctx context.Context, e *mpi.Endpoint, bytes C.size_t) (*region, error) {
	if err := volley.Greet(ctx, e, "volley_alloc", volley.DefaultTimeout, collective.TermOf("bytes", bytes)); err != nil {
		return nil, err
	}
	if w, err := volley.Share(ctx, e, int(bytes), volley.DefaultTimeout); err == nil {
		part := w.Parts[e.Rank()]
		return &region{data: unsafe.Pointer(unsafe.SliceData(part)), memory: part[:bytes:bytes], window: w}, nil
	}
	data := C.calloc(max(1, bytes), 1)
	if data == nil {
		return nil, fmt.Errorf("no memory for %d bytes", uint64(bytes))
	}
	if err := collective.Barrier(ctx, e, volley.DefaultTimeout); err != nil { // another process has no memory
		C.free(data)
		return nil, err
	}
	return &region{data: data, memory: unsafe.Slice((*byte)(data), int(bytes))}, nil
}

//export volleyFree
func volleyFree(data unsafe.Pointer) C.int {
	if data == nil {
		return result(nil)
	}
	regions.Lock()
	defer regions.Unlock()
	i := slices.IndexFunc(regions.list, func(r *region) bool { return r.data == data })
	if i < 0 {
		return result(exit.Usagef("data: it is not what volley_alloc has set, or it was freed before"))
	}
	r := regions.list[i]
	if r.users > 0 {
		return result(exit.Usagef("data: %d requests of volley_encode_init use it: call volley_request_free before", r.users))
	}
	regions.list = slices.Delete(regions.list, i, i+1)
	switch {
	case mpi.Unfinished(): // perhaps to this memory
	case r.window != nil:
		r.window.Close()
	default:
		C.free(r.data)
	}
	return result(nil)
}

// use keeps the regions of memory from being freed until release is called. It returns the windows that there are.
func use(memory ...[]byte) (windows []*transport.Window, release func()) {
	regions.Lock()
	defer regions.Unlock()
	var used []*region
	for _, r := range regions.list {
		if r.window != nil {
			windows = append(windows, r.window)
		}
		for _, m := range memory {
			if apart([]piece{{"", r.memory, true}, {"", m, false}}) != nil {
				r.users++
				used = append(used, r)
				break
			}
		}
	}
	return windows, func() {
		regions.Lock()
		defer regions.Unlock()
		for _, r := range used {
			r.users--
		}
	}
}

// A persistent encode is ready to be run.
type persistent struct {
	endpoint *mpi.Endpoint
	bound    *volley.Bound
	release  func()

	running sync.Mutex
	failed  error // a run, which is the end
}

//export volleyEncodeInit
func volleyEncodeInit(comm C.MPI_Fint, packet unsafe.Pointer, bytes C.size_t, coded unsafe.Pointer, codedBytes C.size_t, o *C.volley_options, request *C.volley_request) C.int {
	if request != nil {
		*request = C.VOLLEY_REQUEST_NULL
	}
	p := &persistent{release: func() {}}
	err := mpi.Open(int(comm), timeoutOf(o.timeout), aborting(func(e *mpi.Endpoint) error {
		if request == nil {
			return isNull("request")
		}
		x, y, err := ends(packet, bytes, coded, codedBytes)
		if err == nil {
			err = p.bind(context.Background(), e, x, y, o)
		}
		return err
	}))
	if err != nil {
		p.release()
		return result(err)
	}
	*request = number(p)
	return result(nil)
}

// bind makes the encode ready. Coded packets that are too short are found at all processes alike.
func (p *persistent) bind(ctx context.Context, e *mpi.Endpoint, x, y []byte, o *C.volley_options) error {
	encoder, err := encoderOf(e, o)
	if err != nil {
		return err
	}
	if err := volley.Greet(ctx, e, "volley_encode_init", timeoutOf(o.timeout)); err != nil {
		return err
	}
	sizes, err := collective.AllgatherValues(ctx, e, [2]int{len(x), len(y)}, timeoutOf(o.timeout))
	if err != nil {
		return err
	}
	longest := 0
	for _, lengths := range sizes {
		longest = max(longest, lengths[0])
	}
	for rank, lengths := range sizes {
		if lengths[1] < longest {
			return exit.Usagef("coded_bytes: %d at process %d, and coded packets have %d: make it the longest packet of all", lengths[1], rank, longest)
		}
	}
	y = y[:longest:longest]
	windows, release := use(x, y)
	p.endpoint, p.release = e, release
	p.bound, err = encoder.Bind(ctx, telling{e}, []volley.Packet{{Data: x, Result: &y}}, windows...)
	return err
}

// encodeOf returns the encode of a number, locked.
func encodeOf(number *C.volley_request) (*persistent, error) {
	if number == nil {
		return nil, isNull("request")
	}
	requests.Lock()
	defer requests.Unlock()
	p, ready := requests.open[*number].(*persistent)
	switch {
	case !ready:
		return nil, exit.Usagef("request: %d is not of volley_encode_init, or it was freed before", int(*number))
	case !p.running.TryLock():
		return nil, exit.Usagef("request: %d runs in another thread: wait until that returns", int(*number))
	}
	return p, nil
}

//export volleyRun
func volleyRun(number *C.volley_request) C.int {
	p, err := encodeOf(number)
	if err != nil {
		return result(err)
	}
	defer p.running.Unlock()
	if p.failed != nil {
		return result(fmt.Errorf("a run of this request has failed: free it, and make another one: %w", p.failed))
	}
	return result(p.endpoint.Drive(func() error {
		p.failed = aborting(func(*mpi.Endpoint) error { return p.bound.Run() })(p.endpoint)
		return p.failed
	}))
}

//export volleyRequestFree
func volleyRequestFree(number *C.volley_request) C.int {
	if number != nil && *number == C.VOLLEY_REQUEST_NULL {
		return result(nil)
	}
	p, err := encodeOf(number)
	if err != nil {
		return result(err)
	}
	defer p.running.Unlock()
	closed := false
	err = p.endpoint.Drive(func() error {
		closed = true
		p.bound.Close()
		return p.endpoint.Close()
	})
	if !closed {
		return result(err)
	}
	p.release()
	requests.Lock()
	defer requests.Unlock()
	delete(requests.open, *number)
	*number = C.VOLLEY_REQUEST_NULL
	return result(err)
}
