//go:build mpi

package mpi

/*
#include <mpi.h>
#include <stdlib.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

// What are macros in one library and variables in another.
static MPI_Comm volley_world(void) { return MPI_COMM_WORLD; }
static MPI_Comm volley_comm(MPI_Fint f) { return MPI_Comm_f2c(f); }
static MPI_Fint volley_handle(MPI_Comm c) { return MPI_Comm_c2f(c); }

static int volley_init(int *provided) {
	int flag;
	int rc = MPI_Initialized(&flag);
	if (rc == MPI_SUCCESS && flag) return MPI_Query_thread(provided);
	if (rc != MPI_SUCCESS) return rc;
	return MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, provided);
}

static int volley_duplicate(MPI_Comm comm, MPI_Comm *dup, int *rank, int *size, int *most) {
	int rc = MPI_Comm_dup(comm, dup);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_set_errhandler(*dup, MPI_ERRORS_RETURN);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_rank(*dup, rank);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_size(*dup, size);
	if (rc != MPI_SUCCESS) return rc;
	int *bound, flag;
	rc = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
	*most = rc == MPI_SUCCESS && flag ? *bound : 32767;
	return rc;
}

// volley_send sends count blocks of memory as one message.
static int volley_send(int count, MPI_Aint *at, int *lengths, int dst, int tag, MPI_Comm comm, MPI_Request *request) {
	if (count == 0) return MPI_Isend(NULL, 0, MPI_BYTE, dst, tag, comm, request);
	if (count == 1) return MPI_Isend((void *)at[0], lengths[0], MPI_BYTE, dst, tag, comm, request);
	MPI_Datatype type;
	int rc = MPI_Type_create_hindexed(count, lengths, at, MPI_BYTE, &type);
	if (rc == MPI_SUCCESS) rc = MPI_Type_commit(&type);
	if (rc != MPI_SUCCESS) return rc;
	rc = MPI_Isend(MPI_BOTTOM, 1, type, dst, tag, comm, request);
	int freed = MPI_Type_free(&type);
	return rc != MPI_SUCCESS ? rc : freed;
}

// volley_probe matches a message, if one has come.
static int volley_probe(int src, int tag, MPI_Comm comm, int *there, MPI_Message *message, int *from, int *bytes) {
	MPI_Status status;
	int rc = MPI_Improbe(src < 0 ? MPI_ANY_SOURCE : src, tag, comm, there, message, &status);
	if (rc != MPI_SUCCESS || !*there) return rc;
	*from = status.MPI_SOURCE;
	return MPI_Get_count(&status, MPI_BYTE, bytes);
}

static int volley_receive(void *at, int bytes, MPI_Message *message, MPI_Request *request) {
	return MPI_Imrecv(at, bytes, MPI_BYTE, message, request);
}

static int volley_test(MPI_Request *request, int *done) {
	return MPI_Test(request, done, MPI_STATUS_IGNORE);
}

static int volley_free(MPI_Comm *comm) { return MPI_Comm_free(comm); }

static void volley_progress(void) {
	int flag;
	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static int volley_finalize(void) {
	int flag;
	int rc = MPI_Finalized(&flag);
	return rc != MPI_SUCCESS || flag ? rc : MPI_Finalize();
}

// volley_nap sleeps so many nanoseconds, and on Linux not the 50 µs more that it adds.
static void volley_nap(long ns) {
#ifdef __linux__
	static __thread int exact;
	if (!exact) exact = prctl(PR_SET_TIMERSLACK, 1000) == 0;
#endif
	struct timespec t = {0, ns};
	nanosleep(&t, NULL);
}

static void volley_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

// An mpiError is what an MPI call returned.
type mpiError struct {
	doing string
	code  C.int
}

func (e *mpiError) Error() string {
	text := make([]byte, C.MPI_MAX_ERROR_STRING)
	length := C.int(0)
	C.MPI_Error_string(e.code, (*C.char)(unsafe.Pointer(&text[0])), &length)
	return fmt.Sprintf("%s: %s", e.doing, text[:length])
}

// failed returns the error of a call, or nil.
func failed(doing string, code C.int) error {
	if code == C.MPI_SUCCESS {
		return nil
	}
	return &mpiError{doing, code}
}

// mostBytes bounds an MPI message: its length is an int. A message is sent in pieces of as
// many bytes and a last one of fewer. Tests make it less.
var mostBytes = 1 << 30

// A request is an operation under way. Its memory is pinned, and the request itself is in
// C memory, as it is written between calls.
type request struct {
	handle *C.MPI_Request
	pinned runtime.Pinner
}

func newRequest() *request {
	return &request{handle: (*C.MPI_Request)(C.malloc(C.size_t(unsafe.Sizeof(*new(C.MPI_Request)))))}
}

// test reports whether the operation is over; then the request is.
func (r *request) test() (bool, error) {
	done := C.int(0)
	if err := failed("MPI_Test", C.volley_test(r.handle, &done)); err != nil || done != 0 {
		r.end()
		return true, err
	}
	return false, nil
}

func (r *request) end() {
	r.pinned.Unpin()
	C.free(unsafe.Pointer(r.handle))
	r.handle = nil
}

// send sends blocks of memory, none of them empty and together at most mostBytes, as one
// MPI message.
func (g *communicator) send(dst, tag int, blocks [][]byte) (*request, error) {
	r := newRequest()
	n := len(blocks)
	var at *C.MPI_Aint
	var lengths *C.int
	if n > 0 {
		at = (*C.MPI_Aint)(C.malloc(C.size_t(n) * C.size_t(unsafe.Sizeof(C.MPI_Aint(0)))))
		lengths = (*C.int)(C.malloc(C.size_t(n) * C.size_t(unsafe.Sizeof(C.int(0)))))
		defer C.free(unsafe.Pointer(at))
		defer C.free(unsafe.Pointer(lengths))
		ats, sizes := unsafe.Slice(at, n), unsafe.Slice(lengths, n)
		for i, b := range blocks {
			r.pinned.Pin(unsafe.SliceData(b))
			ats[i], sizes[i] = C.MPI_Aint(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), C.int(len(b))
		}
	}
	if err := failed("MPI_Isend", C.volley_send(C.int(n), at, lengths, C.int(dst), C.int(tag), g.comm, r.handle)); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// A matched is an MPI message that has come and been matched.
type matched struct {
	from, bytes int
	message     C.MPI_Message
}

// probe matches the next message with a tag from a rank, or from any if that is negative;
// ok is false where none has come.
func (g *communicator) probe(src, tag int) (m matched, ok bool, err error) {
	var there, from, bytes C.int
	err = failed("MPI_Improbe", C.volley_probe(C.int(src), C.int(tag), g.comm, &there, &m.message, &from, &bytes))
	m.from, m.bytes = int(from), int(bytes)
	return m, err == nil && there != 0, err
}

// receive takes a matched message into a buffer that is as long.
func (m *matched) receive(into []byte) (*request, error) {
	r := newRequest()
	var at unsafe.Pointer
	if len(into) > 0 {
		at = unsafe.Pointer(unsafe.SliceData(into))
		r.pinned.Pin(at)
	}
	if err := failed("MPI_Imrecv", C.volley_receive(at, C.int(m.bytes), &m.message, r.handle)); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// A communicator is a group of ranks.
type communicator struct {
	comm       C.MPI_Comm
	rank, size int
	mostTag    int
}

// duplicate makes a communicator of the ranks of another, given by its Fortran handle, or
// where that is nil of all. All ranks call it.
func duplicate(handle *int) (*communicator, error) {
	of := C.volley_world()
	if handle != nil {
		of = C.volley_comm(C.MPI_Fint(*handle))
	}
	g := new(communicator)
	var rank, size, most C.int
	if err := failed("MPI_Comm_dup", C.volley_duplicate(of, &g.comm, &rank, &size, &most)); err != nil {
		return nil, err
	}
	g.rank, g.size, g.mostTag = int(rank), int(size), int(most)
	return g, nil
}

func (g *communicator) free() error { return failed("MPI_Comm_free", C.volley_free(&g.comm)) }

// initialize starts MPI unless it is started, and reports whether any thread may call it,
// one at a time.
func initialize() (anyThread bool, err error) {
	var provided C.int
	if err := failed("MPI_Init_thread", C.volley_init(&provided)); err != nil {
		return false, err
	}
	return provided >= C.MPI_THREAD_SERIALIZED, nil
}

func finalize() error { return failed("MPI_Finalize", C.volley_finalize()) }

// nap sleeps for less than a second. The runtime's own timers are for milliseconds: an
// idle process waits for them in steps of one.
func nap(d time.Duration) { C.volley_nap(C.long(d)) }

// progress lets MPI go on with what it holds.
func progress() { C.volley_progress() }

func abortJob(code int) { C.volley_abort(C.int(code)) }
