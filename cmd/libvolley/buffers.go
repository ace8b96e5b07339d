//go:build mpi

package main

// #include "volley.h"
import "C"

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unsafe"

	"volley/group/buffers"
	"volley/internal/exit"
	"volley/transport/mpi"
)

//export volleyParityBytes
func volleyParityBytes(comm C.MPI_Fint, first *C.volley_buffer, count, tolerate C.int, o *C.volley_group_options, bytes *C.size_t) C.int {
	list, err := listOf(first, count)
	var sizes []int64
	for i, b := range list {
		err = cmp.Or(err, length(fmt.Sprintf("buffers[%d]", i), b.bytes))
		sizes = append(sizes, int64(b.bytes))
	}
	if bytes == nil {
		err = cmp.Or(err, isNull("parity_bytes"))
	}
	p, wrong := bufferOptions(tolerate, o)
	var n int64
	op := operate(o, cmp.Or(err, wrong))
	op.run = func(ctx context.Context, e *mpi.Endpoint) (err error) {
		n, err = buffers.ParityBytes(ctx, e, sizes, p)
		return err
	}
	code := op.perform(comm)
	if code == C.VOLLEY_OK {
		*bytes = C.size_t(n)
	}
	return code
}

//export volleyProtectBuffers
func volleyProtectBuffers(comm C.MPI_Fint, first *C.volley_buffer, count, tolerate C.int, parity unsafe.Pointer, parityBytes C.size_t, o *C.volley_group_options, begin C.int, request *C.volley_request) C.int {
	data, room, err := buffersOf(first, count, parity, parityBytes, false)
	p, wrong := bufferOptions(tolerate, o)
	op := operate(o, cmp.Or(err, wrong))
	op.run = func(ctx context.Context, e *mpi.Endpoint) error {
		p.Progress = op.progress
		return buffers.Protect(ctx, e, data, room, p)
	}
	return op.start(comm, begin, request)
}

//export volleyBufferSizes
func volleyBufferSizes(comm C.MPI_Fint, parity unsafe.Pointer, parityBytes, bytes *C.size_t, count *C.int, o *C.volley_group_options) C.int {
	var room []C.size_t
	var written []byte
	var err error
	switch {
	case parityBytes == nil:
		err = isNull("parity_bytes")
	case count == nil:
		err = isNull("count")
	case parity != nil:
		written, err = memory("parity", parity, *parityBytes)
	}
	if err == nil && bytes != nil {
		room = unsafe.Slice(bytes, max(0, *count))
	}
	p, wrong := bufferOptions(0, o)
	var sizes []int64
	var n int64
	op := operate(o, cmp.Or(err, wrong))
	op.run = func(ctx context.Context, e *mpi.Endpoint) (err error) {
		sizes, n, err = buffers.Sizes(ctx, e, written, p)
		return err
	}
	code := op.perform(comm)
	if code == C.VOLLEY_OK {
		*parityBytes, *count = C.size_t(n), C.int(len(sizes))
		for i := range min(len(sizes), len(room)) {
			room[i] = C.size_t(sizes[i])
		}
	}
	return code
}

//export volleyRecoverBuffers
func volleyRecoverBuffers(comm C.MPI_Fint, first *C.volley_buffer, count, lost C.int, parity unsafe.Pointer, parityBytes C.size_t, o *C.volley_group_options, begin C.int, request *C.volley_request) C.int {
	data, room, err := buffersOf(first, count, parity, parityBytes, true)
	p, wrong := bufferOptions(0, o)
	op := operate(o, cmp.Or(err, wrong))
	op.run = func(ctx context.Context, e *mpi.Endpoint) error {
		p.Progress = op.progress
		r, err := buffers.Recover(ctx, e, data, lost != 0, room, p)
		if err == nil {
			op.note = strings.Join(r.Notes, "; ")
		}
		return err
	}
	return op.start(comm, begin, request)
}

// listOf returns the buffers as C has them.
func listOf(first *C.volley_buffer, count C.int) ([]C.volley_buffer, error) {
	if count < 0 || first == nil && count > 0 {
		return nil, exit.Usagef("buffers: NULL, or count %d below 0", int(count))
	}
	return unsafe.Slice(first, int(count)), nil
}

// buffersOf returns the caller's buffers, which may be written or only read, and the room for parity.
func buffersOf(first *C.volley_buffer, count C.int, parity unsafe.Pointer, bytes C.size_t, written bool) (data [][]byte, room []byte, err error) {
	list, err := listOf(first, count)
	if err != nil {
		return nil, nil, err
	}
	var pieces []piece
	for i, b := range list {
		name := fmt.Sprintf("buffers[%d]", i)
		m, err := memory(name, b.data, b.bytes)
		if err != nil {
			return nil, nil, err
		}
		data, pieces = append(data, m), append(pieces, piece{name, m, written})
	}
	if room, err = memory("parity", parity, bytes); err != nil {
		return nil, nil, err
	}
	return data, room, apart(append(pieces, piece{"parity", room, true}))
}

// bufferOptions returns the options for buffers.
func bufferOptions(tolerate C.int, o *C.volley_group_options) (p buffers.Options, err error) {
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"step", o.step != nil}, {"retain", o.retain != 0}, {"set_size", o.set_size != 0}, {"domain", o.domain != nil},
	} {
		if option.set {
			return p, exit.Usagef("%s: it is for directories: leave it 0", option.name)
		}
	}
	g, err := groupOptions(o)
	return buffers.Options{Settings: g, Tolerate: int(tolerate), Digest: C.GoString(o.digest)}, err
}
