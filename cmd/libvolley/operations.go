//go:build mpi

package main

// #include "volley.h"
import "C"

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"volley/internal/exit"
	"volley/transport"
	"volley/transport/mpi"
)

// An operation is what C arguments say, which it does not need any more.
type operation struct {
	timeout C.double
	wrong   error // arguments are: the others hear of that
	run     func(context.Context, *mpi.Endpoint) error
	verdict error  // of a run that has come to its end
	tell    func() // gives the caller what it has come to, once it is over
	note    string // what there is to say after success

	processed, total atomic.Int64 // bytes here
	opened           []transport.Transport
}

// operate returns an operation, of which arguments may be wrong.
func operate(o *C.volley_group_options, wrong error) *operation {
	if o.timeout != o.timeout {
		wrong = cmp.Or(wrong, errNoTimeout)
	}
	return &operation{timeout: o.timeout, wrong: wrong}
}

// errCancelled is why an operation ends by volley_cancel.
var errCancelled = exit.WithCode(errors.New("the call was cancelled"), C.VOLLEY_CANCELLED)

// progress adds to the bytes that are processed, and to those that the operation is to process.
func (op *operation) progress(processed, total int64) {
	op.total.Add(total)
	op.processed.Add(processed)
}

// work returns what [mpi.Drive] calls.
func (op *operation) work(ctx context.Context, cancel context.CancelCauseFunc) func(*mpi.Endpoint) error {
	return func(e *mpi.Endpoint) error {
		err := aborting(func(e *mpi.Endpoint) error {
			if op.wrong != nil {
				return op.wrong
			}
			err := op.run(ctx, e)
			if err != nil && ctx.Err() != nil { // which is why
				err = context.Cause(ctx)
			}
			return err
		})(e)
		if err == nil {
			err = op.verdict // which all have: nobody waits
		}
		cancel(nil) // what waits for its turn goes at once
		for _, t := range slices.Backward(op.opened) {
			err = errors.Join(err, t.Close())
		}
		return err
	}
}

// perform runs an operation.
func (op *operation) perform(comm C.MPI_Fint) C.int {
	return op.finish(mpi.Drive(int(comm), timeoutOf(op.timeout), op.work(context.WithCancelCause(context.Background()))))
}

// finish gives the caller what an operation has come to.
func (op *operation) finish(err error) C.int {
	code := result(err)
	if op.tell != nil {
		op.tell()
	}
	if code == C.VOLLEY_OK {
		note(op.note)
	}
	return code
}

// A request is an operation that goes on beside the caller.
type request struct {
	*operation
	cancel context.CancelCauseFunc
	ended  chan struct{}
	err    error
}

// requests are those that nobody has waited for, and each *persistent that nobody has freed, by their numbers.
var requests = struct {
	sync.Mutex
	last C.volley_request
	open map[C.volley_request]any
}{open: map[C.volley_request]any{}}

// number gives a request its number.
func number(r any) C.volley_request {
	requests.Lock()
	defer requests.Unlock()
	requests.last++
	requests.open[requests.last] = r
	return requests.last
}

// start begins an operation with a request for it, or runs it.
func (op *operation) start(comm C.MPI_Fint, begin C.int, handle *C.volley_request) C.int {
	switch {
	case begin == 0:
		return op.perform(comm)
	case handle == nil:
		op.wrong = isNull("request")
		return op.perform(comm)
	}
	*handle = C.VOLLEY_REQUEST_NULL
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &request{operation: op, cancel: cancel, ended: make(chan struct{})}
	err := mpi.Begin(int(comm), timeoutOf(op.timeout), op.work(ctx, cancel), func(err error) {
		r.err = err
		close(r.ended)
	})
	if err != nil {
		return result(err)
	}
	*handle = number(r)
	return result(nil)
}

// requestOf returns the request of a number, and nil for VOLLEY_REQUEST_NULL. Taken, it is no more there afterwards.
func requestOf(number *C.volley_request, take bool) (*request, error) {
	switch {
	case number == nil:
		return nil, isNull("request")
	case *number == C.VOLLEY_REQUEST_NULL:
		return nil, nil
	}
	requests.Lock()
	defer requests.Unlock()
	switch r := requests.open[*number].(type) {
	case *persistent:
		return nil, exit.Usagef("request: %d is of volley_encode_init: volley_run runs it", int(*number))
	case *request:
		if take {
			delete(requests.open, *number)
		}
		return r, nil
	}
	return nil, exit.Usagef("request: there is no request %d any more: somebody has waited for it", int(*number))
}

//export volleyTest
func volleyTest(number *C.volley_request, wait C.int, finished *C.int) C.int {
	r, err := requestOf(number, false)
	switch {
	case err == nil && finished == nil:
		return result(isNull("done"))
	case r == nil || wait != 0:
	default:
		select {
		case <-r.ended:
		default:
			*finished = 0
			return result(nil)
		}
	}
	if finished != nil {
		*finished = 1
	}
	if r == nil {
		return result(err)
	}
	<-r.ended
	if _, err := requestOf(number, true); err != nil { // another thread has waited for it, too
		return result(err)
	}
	*number = C.VOLLEY_REQUEST_NULL
	return r.finish(r.err)
}

//export volleyProgress
func volleyProgress(number *C.volley_request, processed, total *C.ulonglong) C.int {
	r, err := requestOf(number, false)
	switch {
	case err != nil:
		return result(err)
	case processed == nil:
		return result(isNull("done"))
	case total == nil:
		return result(isNull("total"))
	}
	*processed, *total = 0, 0
	if r != nil {
		*processed = C.ulonglong(r.processed.Load())
		*total = max(*processed, C.ulonglong(max(0, r.total.Load()))) // it may find less to do than it said
	}
	return result(nil)
}

//export volleyCancel
func volleyCancel(number *C.volley_request) C.int {
	r, err := requestOf(number, false)
	if r != nil {
		r.cancel(errCancelled)
	}
	return result(err)
}
