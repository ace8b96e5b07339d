//go:build mpi

package mpi

/*
#cgo !mpich pkg-config: mpi
#cgo mpich pkg-config: mpich
#include <mpi.h>
#include <stdlib.h>
#include "sleep.h"

// What are macros in one library and variables in another.
static MPI_Comm volley_world(void) { return MPI_COMM_WORLD; }
static MPI_Comm volley_comm(MPI_Fint f) { return MPI_Comm_f2c(f); }

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

// volley_discard takes a message, if one has come, and tells its length.
static int volley_discard(int src, int tag, MPI_Comm comm, int *there, int *bytes) {
	MPI_Message message;
	MPI_Status status;
	int rc = MPI_Improbe(src, tag, comm, there, &message, &status);
	if (rc != MPI_SUCCESS || !*there) return rc;
	MPI_Get_count(&status, MPI_BYTE, bytes);
	void *at = malloc(*bytes + 1);
	rc = MPI_Mrecv(at, *bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
	free(at);
	return rc;
}

static int volley_receive(void *at, int bytes, int src, int tag, MPI_Comm comm, MPI_Request *request) {
	return MPI_Irecv(at, bytes, MPI_BYTE, src < 0 ? MPI_ANY_SOURCE : src, tag, comm, request);
}

// volley_peek tells of the first message from a rank that no receive was waiting for.
static int volley_peek(int src, MPI_Comm comm, int *there, int *tag) {
	MPI_Status status;
	int rc = MPI_Iprobe(src, MPI_ANY_TAG, comm, there, &status);
	if (rc == MPI_SUCCESS && *there) *tag = status.MPI_TAG;
	return rc;
}

// A volley_end is what a request that is over came to: bytes are -1 where it was cancelled.
typedef struct {
	int index, bytes, from, code;
} volley_end;

// volley_poll finds out which of count requests are over. There is room for all of them.
static int volley_poll(int count, MPI_Request *requests, int *indices, MPI_Status *statuses, volley_end *ends, int *over) {
	int rc = MPI_Testsome(count, requests, over, indices, statuses), class = MPI_SUCCESS;
	if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
	if (rc != MPI_SUCCESS && class != MPI_ERR_IN_STATUS) return rc;
	if (*over == MPI_UNDEFINED) *over = 0;
	for (int i = 0; i < *over; i++) {
		volley_end *e = &ends[i];
		int cancelled = 0;
		e->index = indices[i];
		e->code = class == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : MPI_SUCCESS;
		e->from = statuses[i].MPI_SOURCE;
		MPI_Test_cancelled(&statuses[i], &cancelled);
		if (cancelled) e->bytes = -1;
		else MPI_Get_count(&statuses[i], MPI_BYTE, &e->bytes);
	}
	return MPI_SUCCESS;
}

// How the process sleeps between polls. Waking by sockets is relied on where by
// experience what is over comes with it; within a host it comes by memory.
static int volley_trust;   // how often it did of late
static long volley_found;  // when sockets were looked for,
static long volley_search; // and how long that took

static void volley_learn(int woken) {
	if (woken) {
		if (volley_trust < 8) volley_trust++;
		return;
	}
	volley_trust = 0;
	long now = volley_now();
	if (now - volley_found < 100 * volley_search) return;
	volley_find_sockets();
	volley_found = volley_now();
	volley_search = volley_found - now;
}

// volley_poll_for polls until a request is over, another thread wants MPI, or so many
// nanoseconds have passed. Between polls it sleeps for a share of the time waited so far,
// or of the time since one was over or, where that is more, as it has been between them;
// for longer where a socket will wake it.
static int volley_poll_for(int count, MPI_Request *requests, int *indices, MPI_Status *statuses, volley_end *ends, int *over,
	long waited, long idle, long pace, long limit, long least, long most, long share, volatile int *wanted) {
	enum { polled, woken, late, napped } after = polled;
	long begun = volley_now();
	for (;;) {
		int rc = volley_poll(count, requests, indices, statuses, ends, over);
		if (*over > 0 && (after == woken || after == late)) volley_learn(after == woken);
		long passed = volley_now() - begun;
		if (rc != MPI_SUCCESS || *over > 0 || *wanted > 0 || passed > limit) return rc;
		long d = waited + passed, e = idle + passed > pace ? idle + passed : pace;
		d = (d < e ? d : e) / share;
		d = d < least ? least : d > most ? most : d;
		if (after == woken) { // by a part of a message, or something that is not MPI's
			volley_sleep(d, 0);
			after = napped;
			continue;
		}
		if (volley_trust > 2) d *= 8;
		after = volley_sleep(d < limit ? d : limit, 1) ? woken : late;
	}
}

static void volley_progress(void) {
	int flag;
	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static int volley_finalize(void) {
	int flag;
	int rc = MPI_Finalized(&flag);
	return rc != MPI_SUCCESS || flag ? rc : MPI_Finalize();
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
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

// fragmentBytes bounds an MPI message: one of ours is sent in fragments of as many bytes and a
// last one of fewer. They are below the eager limit of MPI libraries, on TCP 64 KiB, above which
// a message waits for an answer of its receiver: where two ranks exchange long messages, that
// answer would queue behind what its sender has under way, and one direction would wait for the
// other. By measurement that is no loss within a host either.
var fragmentBytes = 60 << 10

// A request is an operation under way. Its memory is pinned.
type request struct {
	index  int // among those of the communicator, while it is not over
	over   bool
	bytes  int // that a receive got, or -1 where it was cancelled
	from   int // the sender of what a receive got
	err    error
	pinned runtime.Pinner
}

// requests are those of a communicator that are not over. What MPI takes lists of is in C
// memory, as it is written between calls.
type requests struct {
	list     []*request
	room     int
	handles  *C.MPI_Request
	indices  *C.int
	statuses *C.MPI_Status
	ends     *C.volley_end
	overAt   time.Time     // when one was over
	pace     time.Duration // between one that was over and the next
}

// add returns a new request and where MPI is to put its handle.
func (s *requests) add() (*request, *C.MPI_Request) {
	if n := len(s.list); n == s.room {
		s.room = max(64, 2*n)
		grow := func(p unsafe.Pointer, size uintptr) unsafe.Pointer {
			return C.realloc(p, C.size_t(s.room)*C.size_t(size))
		}
		s.handles = (*C.MPI_Request)(grow(unsafe.Pointer(s.handles), unsafe.Sizeof(*s.handles)))
		s.indices = (*C.int)(grow(unsafe.Pointer(s.indices), unsafe.Sizeof(*s.indices)))
		s.statuses = (*C.MPI_Status)(grow(unsafe.Pointer(s.statuses), unsafe.Sizeof(*s.statuses)))
		s.ends = (*C.volley_end)(grow(unsafe.Pointer(s.ends), unsafe.Sizeof(*s.ends)))
	}
	r := &request{index: len(s.list)}
	s.list = append(s.list, r)
	return r, s.handle(r.index)
}

func (s *requests) handle(i int) *C.MPI_Request { return &unsafe.Slice(s.handles, s.room)[i] }

// end takes a request off the list.
func (s *requests) end(r *request) {
	last := len(s.list) - 1
	*s.handle(r.index) = *s.handle(last)
	s.list[r.index] = s.list[last]
	s.list[r.index].index = r.index
	s.list[last] = nil
	s.list = s.list[:last]
	r.over = true
	r.pinned.Unpin()
}

// poll finds out which requests are over. It is the one call by which MPI goes on.
func (s *requests) poll() error {
	var over C.int
	code := C.volley_poll(C.int(len(s.list)), s.handles, s.indices, s.statuses, s.ends, &over)
	return s.note(code, over)
}

// pollFor polls until a request is over, somebody else wants the lock, or mostPoll has
// passed, in a wait that has lasted so long. It sleeps in C, as the runtime's own timers
// are for milliseconds and what it does around each of many short calls takes more than
// the polls.
func (s *requests) pollFor(waited time.Duration, wanted *atomic.Int32) error {
	var over C.int
	code := C.volley_poll_for(C.int(len(s.list)), s.handles, s.indices, s.statuses, s.ends, &over,
		C.long(waited), C.long(time.Since(s.overAt)), C.long(s.pace), C.long(mostPoll), C.long(leastSleep), C.long(mostSleep), sleepShare, (*C.int)(unsafe.Pointer(wanted)))
	return s.note(code, over)
}

// note takes the requests that are over off the list.
func (s *requests) note(code, over C.int) error {
	if err := failed("MPI_Testsome", code); err != nil {
		return err
	}
	if over > 0 {
		now := time.Now()
		s.pace, s.overAt = (s.pace+now.Sub(s.overAt)/time.Duration(over))/2, now
	}
	ended := make([]*request, 0, 16)
	for _, e := range unsafe.Slice(s.ends, s.room)[:over] {
		r := s.list[e.index]
		r.bytes, r.from, r.err = int(e.bytes), int(e.from), failed("MPI_Testsome", e.code)
		ended = append(ended, r)
	}
	for _, r := range ended {
		s.end(r)
	}
	return nil
}

// cancel ends a receive for which nothing has come. It is over when poll says so.
func (s *requests) cancel(r *request) error {
	return failed("MPI_Cancel", C.MPI_Cancel(s.handle(r.index)))
}

// drop gives the lists back. Requests that are not over keep their memory pinned.
func (s *requests) drop() {
	for _, p := range []unsafe.Pointer{unsafe.Pointer(s.handles), unsafe.Pointer(s.indices), unsafe.Pointer(s.statuses), unsafe.Pointer(s.ends)} {
		C.free(p)
	}
	*s = requests{}
}

// send sends blocks of memory, none of them empty and together at most fragmentBytes, as one
// MPI message.
func (g *communicator) send(dst, tag int, blocks [][]byte) (*request, error) {
	r, handle := g.add()
	at, lengths := make([]C.MPI_Aint, len(blocks)), make([]C.int, len(blocks))
	for i, b := range blocks {
		r.pinned.Pin(unsafe.SliceData(b))
		at[i], lengths[i] = C.MPI_Aint(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), C.int(len(b))
	}
	code := C.volley_send(C.int(len(blocks)), unsafe.SliceData(at), unsafe.SliceData(lengths), C.int(dst), C.int(tag), g.comm, handle)
	if err := failed("MPI_Isend", code); err != nil {
		g.end(r)
		return nil, err
	}
	return r, nil
}

// anyRank stands for the sender of a message from whomever.
const anyRank = -1

// receive asks for a message of so many bytes. A longer one may be written past its end:
// Open MPI does that within a host.
func (g *communicator) receive(src, tag int, into []byte) (*request, error) {
	r, handle := g.add()
	var at unsafe.Pointer
	if len(into) > 0 {
		at = unsafe.Pointer(unsafe.SliceData(into))
		r.pinned.Pin(at)
	}
	if err := failed("MPI_Irecv", C.volley_receive(at, C.int(len(into)), C.int(src), C.int(tag), g.comm, handle)); err != nil {
		g.end(r)
		return nil, err
	}
	return r, nil
}

// peek returns the tag of the first message from a rank that no receive was waiting for; ok
// is false where there is none.
func (g *communicator) peek(src int) (tag int, ok bool, err error) {
	var there, t C.int
	err = failed("MPI_Iprobe", C.volley_peek(C.int(src), g.comm, &there, &t))
	return int(t), err == nil && there != 0, err
}

// discard takes the next message with a tag from a rank and returns its length; ok is false
// where none has come.
func (g *communicator) discard(src, tag int) (bytes int, ok bool, err error) {
	var there, n C.int
	err = failed("MPI_Mrecv", C.volley_discard(C.int(src), C.int(tag), g.comm, &there, &n))
	return int(n), err == nil && there != 0, err
}

// A communicator is a group of ranks.
type communicator struct {
	comm C.MPI_Comm
	requests
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

func (g *communicator) free() error { return failed("MPI_Comm_free", C.MPI_Comm_free(&g.comm)) }

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

// sleep sleeps for less than a second, to the microsecond.
func sleep(d time.Duration) { C.volley_sleep(C.long(d), 0) }

// wake ends pollFor's sleep.
func wake() { C.volley_wake() }

// progressWorld lets MPI go on with what it holds.
func progressWorld() { C.volley_progress() }

func abortJob(code int) { C.MPI_Abort(C.volley_world(), C.int(code)) }
