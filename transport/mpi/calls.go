//go:build mpi

package mpi

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"volley/transport"
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

// An owner hears which of its requests is over, how many bytes came (-1: it was cancelled), and from whom.
type owner interface {
	ended(fragment, bytes, source int, err error)
}

// A request is one of MPI, or idle. The owner keeps the memory pinned.
type request struct {
	owner
	fragment int // of the owner's
}

// requests are those of a communicator. What MPI takes lists of is in C memory, as it is written between calls.
type requests struct {
	outstanding []request // what MPI has of each is in lists
	idle        []int
	active      int
	adding      []C.volley_fragment // to be posted
	lists       C.volley_requests
	posted      C.int
	ended       []C.volley_end // copies: who hears of one may post more
	overAt      time.Time      // when one was over
	pace        time.Duration  // between one that was over and the next
}

// add has a fragment posted with the next ones.
func (s *requests) add(o owner, fragment int, send bool, rank, tag int, memory []byte) (index int) {
	if n := len(s.idle); n > 0 {
		index, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		index = len(s.outstanding)
		s.outstanding = append(s.outstanding, request{})
		C.volley_add(&s.lists)
	}
	s.outstanding[index] = request{o, fragment}
	s.active++
	p := C.volley_fragment{
		at: C.ulong(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), bytes: C.int(len(memory)),
		rank: C.int(rank), tag: C.int(tag), index: C.int(index),
	}
	switch {
	case send:
		p.send = 1
	case tag == controlTag:
		p.weight = math.MaxInt32 // somebody may wait for what follows from it
	default:
		p.weight = 1
	}
	s.adding = append(s.adding, p)
	return index
}

// post posts what was added, in one call.
func (g *communicator) post() {
	for len(g.adding) > 0 {
		code := C.volley_post(C.int(len(g.adding)), &g.adding[0], g.comm, &g.lists, &g.posted)
		failures := slices.Clone(g.adding[g.posted:])
		g.adding = g.adding[:0]
		for _, p := range failures {
			g.end(int(p.index), -1, int(p.rank), failed("MPI_Isend or MPI_Irecv", code))
		}
	}
}

func (s *requests) end(index, bytes, source int, err error) {
	r := s.outstanding[index]
	s.outstanding[index] = request{}
	s.idle = append(s.idle, index)
	s.active--
	r.ended(r.fragment, bytes, source, err)
}

// poll finds out which requests are over. It is the one call by which MPI goes on.
func (s *requests) poll() error {
	return s.note(C.volley_poll(&s.lists))
}

// pollFor polls until so many receives are over, or anything for 0, a control message has come, somebody else wants the
// lock, or mostPoll has passed. Nothing has come for the time waited; it spins for spin. Where ranks are crowded, it yields
// its core between polls after 1 ms. It sleeps in C, as the runtime's timers are for milliseconds.
func (s *requests) pollFor(receives int, waited, spin time.Duration, apart, crowded bool, wanted *atomic.Int32) error {
	code := C.volley_poll_for(&s.lists, C.int(receives), C.long(waited), C.long(time.Since(s.overAt)), C.long(s.pace), C.long(mostPoll),
		C.long(spin), C.bool(apart), C.bool(crowded), (*C.int)(unsafe.Pointer(wanted)))
	return s.note(code)
}

// note ends the requests that are over.
func (s *requests) note(code C.int) error {
	if err := failed("MPI_Testsome", code); err != nil {
		return err
	}
	s.ended = append(s.ended[:0], unsafe.Slice(s.lists.ends, s.lists.over)...)
	s.lists.over = 0
	if count := len(s.ended); count > 0 {
		seen := time.Now()
		if !s.overAt.IsZero() {
			s.pace = (s.pace + seen.Sub(s.overAt)/time.Duration(count)) / 2
		}
		s.overAt = seen
	}
	for _, e := range s.ended {
		s.end(int(e.index), int(e.bytes), int(e.from), failed("MPI_Testsome", e.code))
	}
	return nil
}

// cancel ends a receive for which nothing has come. It is over when poll says so.
func (s *requests) cancel(index int) error {
	return failed("MPI_Cancel", C.MPI_Cancel(&unsafe.Slice(s.lists.requests, s.lists.count)[index]))
}

// drop gives the lists back. What is left keeps its memory.
func (s *requests) drop() { C.volley_drop(&s.lists) }

// anyRank stands for the sender of a message from whomever.
const anyRank = -1

// peek returns the tag of the first message from a rank that no receive was waiting for; ok is false without one.
func (g *communicator) peek(src int) (tag int, ok bool, err error) {
	var found, t C.int
	err = failed("MPI_Iprobe", C.volley_peek(C.int(src), g.comm, &found, &t))
	return int(t), err == nil && found != 0, err
}

// discard takes the next message with a tag from a rank and returns its length; ok is false where none has come.
func (g *communicator) discard(src, tag int) (bytes int, ok bool, err error) {
	var found, n C.int
	err = failed("MPI_Mrecv", C.volley_discard(C.int(src), C.int(tag), g.comm, &found, &n))
	return int(n), err == nil && found != 0, err
}

type communicator struct {
	comm C.MPI_Comm
	requests
	rank, size  int
	mostTag     int
	cores       int     // this rank's share of those of its machine
	sameMachine []bool  // of each rank: whether it is on this machine
	machines    [][]int // the ranks of each, the machine of the least rank first
	machine     int     // which of these is this one
	overlaps    bool    // not all ranks are here, or each has two cores or more
	mostSpin    time.Duration
	crowded     bool // there are more ranks on this machine than cores
}

// split makes a communicator of the ranks of another one that name the same set, in the order of their keys. All ranks
// of that call it.
func split(parent C.MPI_Comm, set, key int) (*communicator, error) {
	g := new(communicator)
	if err := failed("MPI_Comm_split", C.MPI_Comm_split(parent, C.int(set), C.int(key), &g.comm)); err != nil {
		return nil, err
	}
	if err := g.identify(); err != nil {
		return nil, err
	}
	mine, everyone := [2]C.long{C.long(machine()), C.long(runtime.GOMAXPROCS(0))}, make([][2]C.long, g.size)
	code := C.MPI_Allgather(unsafe.Pointer(&mine), 2, C.volley_long(), unsafe.Pointer(&everyone[0]), 2, C.volley_long(), g.comm)
	g.neighbours(everyone)
	return g, failed("MPI_Allgather", code)
}

// identify finds out this rank, how many there are, and the largest tag.
func (g *communicator) identify() error {
	var rank, size, limit C.int
	code := C.volley_identify(g.comm, &rank, &size, &limit)
	g.rank, g.size, g.mostTag = int(rank), int(size), int(limit)
	return failed("MPI_Comm_rank", code)
}

// neighbours notes which ranks are on this machine: each has told the number of its own, and its cores. Where they may
// use more cores together than it has, each has its share.
func (g *communicator) neighbours(machines [][2]C.long) {
	machine, cores := machines[g.rank][0], int(machines[g.rank][1])
	ranks, crowd, least := 0, 0, cores
	var numbers []C.long
	for _, peer := range machines {
		numbers = append(numbers, peer[0])
		g.sameMachine = append(g.sameMachine, peer[0] == machine)
		if peer[0] == machine {
			ranks, crowd, least = ranks+1, crowd+int(peer[1]), min(least, int(peer[1]))
		}
	}
	g.machines, g.machine = transport.ByHost(numbers, g.rank)
	online := int(C.sysconf(C._SC_NPROCESSORS_ONLN))
	share := func(cores int) int { return max(1, cores*online/max(crowd, online)) }
	g.crowded, g.cores = ranks > online, share(cores)
	g.mostSpin, g.overlaps = spinHere, share(least) > 1
	if ranks < g.size {
		g.mostSpin, g.overlaps = spinApart, true
	}
}

// machine returns a number of this machine, or of the network that it is given there, such as a container's.
func machine() int64 {
	name, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, _ := os.Readlink("/proc/self/ns/net")
	h := fnv.New64()
	fmt.Fprint(h, name, string(boot), network)
	return int64(h.Sum64())
}

func (g *communicator) free() error { return failed("MPI_Comm_free", C.MPI_Comm_free(&g.comm)) }

// initialize starts MPI unless it is started. It returns whether any thread may call it, one at a time, and whether several
// may at once.
func initialize() (anyThread, multiple bool, err error) {
	var provided C.int
	err = failed("MPI_Init_thread", C.volley_init(&provided))
	return provided >= C.MPI_THREAD_SERIALIZED, provided >= C.MPI_THREAD_MULTIPLE, err
}

func finalize() error { return failed("MPI_Finalize", C.volley_finalize()) }

// sleep sleeps for less than a second, to the microsecond.
func sleep(d time.Duration) { C.volley_sleep(C.long(d), 0) }

// wake ends pollFor's sleep.
func wake() { C.volley_wake() }

// progressWorld lets MPI go on with what it holds.
func progressWorld() { C.volley_progress() }

func abortJob(code int) { C.MPI_Abort(C.volley_world(), C.int(code)) }
