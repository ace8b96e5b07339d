//go:build mpi

// Libvolley is the library for C and Fortran programs that use MPI; volley.h says what is in it.
package main

// #include <stdlib.h>
// #include "volley.h"
// void volley_note(const char *);
// typedef void *(*volley_allocator)(size_t);
// void *volley_allocate(volley_allocator, size_t);
import "C"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"volley"
	"volley/coded"
	"volley/field"
	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/internal/memo"
	"volley/internal/printable"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
	"volley/transport/mpi"
)

// main is not called.
func main() {}

func note(text string) {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	C.volley_note(c)
}

// version is in C memory for good.
var version = C.CString(volley.Version)

//export volleyVersion
func volleyVersion() *C.char { return version }

//export volleyEncode
func volleyEncode(comm C.MPI_Fint, packet unsafe.Pointer, bytes C.size_t, result unsafe.Pointer, resultBytes C.size_t, o *C.volley_options) C.int {
	return drive(comm, o.timeout, func(e *mpi.Endpoint) error {
		x, y, err := ends(packet, bytes, result, resultBytes)
		if err != nil {
			return err
		}
		return encode(e, volley.Packet{Data: x, Coded: room(y)}, o)
	})
}

// ends returns the memory of a packet and of its coded packet.
func ends(packet unsafe.Pointer, bytes C.size_t, coded unsafe.Pointer, codedBytes C.size_t) (x, y []byte, err error) {
	if x, err = memory("packet", packet, bytes); err != nil {
		return nil, nil, err
	}
	if y, err = memory("coded", coded, codedBytes); err != nil {
		return nil, nil, err
	}
	return x, y, apart([]piece{{"packet", x, false}, {"coded", y, true}})
}

//export volleyEncodeNew
func volleyEncodeNew(comm C.MPI_Fint, packet unsafe.Pointer, bytes C.size_t, allocate C.volley_allocator, o *C.volley_options) C.int {
	var coded []byte
	code := drive(comm, o.timeout, func(e *mpi.Endpoint) error {
		x, err := memory("packet", packet, bytes)
		if err != nil {
			return err
		}
		return encode(e, volley.Packet{Data: x, Result: &coded}, o)
	})
	if code != C.VOLLEY_OK {
		return code
	}
	target := C.volley_allocate(allocate, C.size_t(len(coded)))
	if target == nil {
		return result(fmt.Errorf("no memory for %d bytes of a coded packet", len(coded)))
	}
	copy(unsafe.Slice((*byte)(target), len(coded)), coded)
	return code
}

//export volleyRefuse
func volleyRefuse(comm C.MPI_Fint, reason *C.char, timeout C.double) C.int {
	err := exit.AsUsage(errors.New(C.GoString(reason)))
	return drive(comm, timeout, func(*mpi.Endpoint) error { return err })
}

//export volleyDecode
func volleyDecode(comm C.MPI_Fint, packet unsafe.Pointer, bytes C.size_t, lost C.int, parity unsafe.Pointer, parityBytes C.size_t, o *C.volley_options) C.int {
	return drive(comm, o.timeout, func(e *mpi.Endpoint) error {
		x, err := memory("packet", packet, bytes)
		if err != nil {
			return err
		}
		var codedPacket []byte // not nil where there is one, whatever its length
		if parity != nil {
			if codedPacket, err = memory("coded", parity, parityBytes); err != nil {
				return err
			}
		}
		if err := apart([]piece{{"packet", x, lost != 0}, {"coded", codedPacket, false}}); err != nil {
			return err
		}
		return decode(e, x, lost != 0, codedPacket, o)
	})
}

// memory returns the bytes of the caller at p.
func memory(name string, p unsafe.Pointer, bytes C.size_t) ([]byte, error) {
	err := length(name, bytes)
	switch {
	case bytes == 0:
		return []byte{}, nil
	case p == nil:
		return nil, exit.Usagef("%s: NULL, of %d bytes", name, uint64(bytes))
	case err != nil:
		return nil, err
	}
	return unsafe.Slice((*byte)(p), int(bytes)), nil
}

// length returns an error where no memory is as long.
func length(name string, bytes C.size_t) error {
	if uint64(bytes) > 1<<46 { // more than there are addresses
		return exit.Usagef("%s: %d bytes: no memory is as long", name, uint64(bytes))
	}
	return nil
}

// isNull returns the error of an argument that is to be set.
func isNull(name string) error { return exit.Usagef("%s: NULL: want where to write it", name) }

// A piece is memory of the caller.
type piece struct {
	name    string
	memory  []byte
	written bool // or only read
}

// apart returns an error where memory that is written overlaps another piece.
func apart(pieces []piece) error {
	start := func(p piece) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p.memory))) }
	end := func(p piece) uintptr { return start(p) + uintptr(len(p.memory)) }
	pieces = slices.DeleteFunc(slices.Clone(pieces), func(p piece) bool { return len(p.memory) == 0 })
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(start(a), start(b)) })
	var last, written piece // those of the ones before that reach the furthest
	for _, p := range pieces {
		overlapped := written
		if p.written {
			overlapped = last
		}
		if start(p) < end(overlapped) {
			return exit.Usagef("%s overlaps %s: what is written needs memory of its own", p.name, overlapped.name)
		}
		if end(p) > end(last) {
			last = p
		}
		if p.written && end(p) > end(written) {
			written = p
		}
	}
	return nil
}

// groupOptions returns options of a group.
func groupOptions(o *C.volley_group_options) (g protection.Settings, err error) {
	g = protection.Settings{Timeout: timeoutOf(o.timeout), Memory: int64(o.memory)}
	err = cmp.Or(length("memory", o.memory), group.UseKey(&g, C.GoString(o.key)))
	return g, err
}

// drive calls f with this process's endpoint, and returns what the C function does.
func drive(comm C.MPI_Fint, timeout C.double, f func(*mpi.Endpoint) error) C.int {
	return result(mpi.Drive(int(comm), timeoutOf(timeout), aborting(f)))
}

// aborting has the others hear of an error.
func aborting(f func(*mpi.Endpoint) error) func(*mpi.Endpoint) error {
	return func(e *mpi.Endpoint) error {
		err := f(e)
		if err != nil {
			e.Abort(numbered(err)) // they wait, or will
		}
		return err
	}
}

// numbered gives an error its number at all processes.
func numbered(err error) error { return exit.WithCode(err, exit.Code(err)) }

// A telling endpoint tells the others the number, too, where a run ends itself.
type telling struct{ *mpi.Endpoint }

func (t telling) Abort(cause error) { t.Endpoint.Abort(numbered(cause)) }

// result notes how a call has ended, and returns the number for it, which is the exit code of the command line.
func result(err error) C.int {
	text := ""
	if err != nil {
		text = printable.Text(tell(err))
	}
	note(text)
	return C.int(exit.Code(err))
}

// optionAdvice says with which option a function, or the command, does what a function has refused.
var optionAdvice = map[protection.Option]string{
	protection.OptionBelieve:       "volley recover --believe names the node to go by",
	protection.OptionAcceptDeleted: "if it was meant, volley protect --accept deleted protects what is left",
	protection.OptionAcceptChanged: "volley recover --revert changed,deleted brings it back; if it was meant, volley protect --accept changed protects it",
	protection.OptionTolerate:      "say it with tolerate",
	protection.OptionForce:         "volley protect --force protects the group as it is",
	protection.OptionGiveUp:        "volley unprotect --force gives it up",
	protection.OptionKey:           `key in the options names its file, "none" goes without`,
}

// tell returns the text of an error, and what the caller can do about it.
func tell(err error) string {
	if input := new(protection.RefusedError); errors.As(err, &input) && optionAdvice[input.Option] != "" {
		return err.Error() + "; " + optionAdvice[input.Option]
	}
	return err.Error()
}

// errNoTimeout is that of seconds that are no number.
var errNoTimeout = exit.Usagef("timeout: NaN: want seconds; 0: 30, below 0: never")

// timeoutOf returns the timeout that seconds say: 0 is the default, and less is none.
func timeoutOf(seconds C.double) time.Duration {
	if seconds == 0 || seconds != seconds {
		return volley.DefaultTimeout
	}
	return max(0, time.Duration(float64(seconds)*float64(time.Second)))
}

// modelOf returns the option of the model that plans are chosen by.
func modelOf(o *C.volley_options) (volley.Option, error) {
	name := C.GoString(o.network)
	switch {
	case o.ports != 0 && name != "":
		return nil, exit.Usagef("ports: they belong to the model of the paper, and network to another: leave one of them 0")
	case o.ports != 0:
		return volley.WithPaperModel(int(o.ports), volley.DefaultBeta, volley.DefaultTau), nil
	case name == "":
		return volley.WithNetwork(volley.DefaultNetwork()), nil
	}
	n, err := sim.ParseNetwork(name)
	return volley.WithNetwork(n), exit.AsUsage(err)
}

// matrixOf returns the matrix of the processes of e, the encoder's options but the model, and its timeout.
func matrixOf(e *mpi.Endpoint, o *C.volley_options) (matrix.Matrix, []volley.Option, time.Duration, error) {
	timeout := timeoutOf(o.timeout)
	err := length("memory", o.memory)
	if o.timeout != o.timeout {
		err = errNoTimeout
	}
	if err != nil {
		return nil, nil, 0, err
	}
	f, err := field.Parse(cmp.Or(C.GoString(o.field), "2^8"))
	if err != nil {
		return nil, nil, 0, exit.AsUsage(err)
	}
	spec, err := matrices.ParseSpec(cmp.Or(C.GoString(o.matrix), "cauchy"))
	if err != nil {
		return nil, nil, 0, exit.AsUsage(err)
	}
	a, err := spec.Build(f, e.Size(), e.Size())
	if err != nil {
		return nil, nil, 0, exit.AsUsage(err)
	}
	options := []volley.Option{volley.WithCheck(o.unchecked == 0), volley.WithTimeout(timeout)}
	if name := C.GoString(o.algorithm); name != "" {
		options = append(options, volley.WithAlgorithm(name))
	}
	if o.memory != 0 {
		options = append(options, volley.WithMemory(int64(o.memory)))
	}
	return a, options, timeout, nil
}

// encoders are those of the last four calls that differ. A call with the same arguments uses one again, with its plans and
// programs.
var encoders = memo.New(4)

// encoderOf returns the encoder for the arguments of a call.
func encoderOf(e *mpi.Endpoint, o *C.volley_options) (*volley.Encoder, error) {
	a, options, timeout, err := matrixOf(e, o)
	if err != nil {
		return nil, err
	}
	// The matrix by what it is: a file that it is read from may have changed.
	text := fmt.Sprintln(a.Field().Name(), a.Rows(), a.ID(), C.GoString(o.algorithm), o.ports, C.GoString(o.network), timeout, o.memory, o.unchecked)
	encoder, _, err := memo.Get(context.Background(), encoders, text, 1, func() (*volley.Encoder, error) {
		model, err := modelOf(o)
		if err != nil {
			return nil, err
		}
		encoder, err := volley.NewEncoder(context.Background(), a, append(options, model)...)
		return encoder, exit.AsUsage(err)
	})
	return encoder, err
}

func encode(e *mpi.Endpoint, p volley.Packet, o *C.volley_options) error {
	encoder, err := encoderOf(e, o)
	if err != nil {
		return err
	}
	_, err = encoder.Run(context.Background(), telling{e}, p)
	return err
}

// decode decodes with the others of e. Parity is nil where this process has lost its coded packet.
func decode(e *mpi.Endpoint, packet []byte, lost bool, parity []byte, o *C.volley_options) error {
	a, options, timeout, err := matrixOf(e, o)
	if err != nil {
		return err
	}
	model, err := modelOf(o)
	if err != nil {
		return err
	}
	d := coded.MemoryDecoding{Matrix: a, Timeout: timeout, Options: append(options, model), Inputs: map[int][]byte{}, Coded: map[int][]byte{}}
	if !lost {
		d.Inputs[e.Rank()] = packet
	}
	if parity != nil {
		d.Coded[e.Rank()] = parity
	}
	results, _, err := coded.DecodePackets(context.Background(), telling{e}, d)
	if lost && err == nil {
		n := copy(packet, results[e.Rank()])
		clear(packet[n:])
	}
	return err
}

// room is memory of the caller for a coded packet.
type room []byte

func (m room) WriteAt(p []byte, offset int64) (int, error) {
	if end := offset + int64(len(p)); end > int64(len(m)) {
		return 0, exit.Usagef("coded_bytes: %d, and the coded packet has %d or more: make it the longest packet of all", len(m), end)
	}
	return copy(m[offset:], p), nil
}
