//go:build mpi && linux

package main

// #include "window.h"
import "C"

import (
	"errors"
	"unsafe"
)

// kernels are those of the window, from the one that every processor has.
var kernels = []string{"tables", "AVX2", "GFNI"}

type mpiWindow struct {
	c                *C.window
	inside, finished []byte // the rank's packet and result in the window
}

func (r *mpiRanks) window(products, x []byte) (sharedWindow, error) {
	w, err := newWindow(products, x, len(kernels)-1)
	if err != nil {
		return nil, err // and not a sharedWindow that holds nil
	}
	return w, nil
}

// newWindow makes a window that codes by this one of the kernels at most. All ranks call it.
func newWindow(products, x []byte, kernel int) (*mpiWindow, error) {
	c := C.network_window(bytesOf(products), C.size_t(len(x)), C.int(kernel))
	if c == nil {
		return nil, errors.New("the ranks are on several hosts, which share no memory")
	}
	w := &mpiWindow{c: c}
	w.inside = unsafe.Slice((*byte)(C.network_window_packet(c)), len(x))
	w.finished = unsafe.Slice((*byte)(C.network_window_result(c)), len(x))
	copy(w.inside, x)
	return w, nil
}

func bytesOf(b []byte) *C.uchar { return (*C.uchar)(at(b)) }

func (w *mpiWindow) kernel() string  { return kernels[C.network_window_kernel(w.c)] }
func (w *mpiWindow) clear()          { clear(w.finished) }
func (w *mpiWindow) result(y []byte) { copy(y, w.finished) }
func (w *mpiWindow) close()          { C.network_window_free(w.c) }

func (w *mpiWindow) encode(name string, x, y []byte) {
	switch name {
	case windowSlice:
		C.network_window_slice(w.c)
	case windowOwn:
		C.network_window_own(w.c)
	case copiesSlice:
		C.network_copies_slice(w.c, bytesOf(x), bytesOf(y))
	case copiesOwn:
		C.network_copies_own(w.c, bytesOf(x), bytesOf(y))
	}
}
