//go:build mpi

package main

// The tags are those of package transport/mpi: one library serves both.

/*
#cgo !mpich pkg-config: mpi
#cgo mpich pkg-config: mpich
#include <mpi.h>
#include <time.h>

// What are macros in one library and variables in another. An error ends the job, which
// is what MPI_COMM_WORLD does by default.
static void network_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
// network_assemble waits for all ranks asleep: what it takes of a core, ranks that still
// encode would miss.
static void network_assemble(void) {
	MPI_Request request;
	int flag = 0;
	struct timespec nap = {0, 5000000};
	for (MPI_Ibarrier(MPI_COMM_WORLD, &request); MPI_Test(&request, &flag, MPI_STATUS_IGNORE), !flag;) nanosleep(&nap, NULL);
}
static void network_greatest(double *v, int n) { MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); }
static void network_sum(double *v, int n) { MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void network_allgather(void *x, int n, void *all) { MPI_Allgather(x, n, MPI_BYTE, all, n, MPI_BYTE, MPI_COMM_WORLD); }
static void network_gather(void *x, int n, void *all) { MPI_Gather(x, n, MPI_BYTE, all, n, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void network_scatter(void *all, int n, void *y) { MPI_Scatter(all, n, MPI_BYTE, y, n, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void network_alltoall(void *out, int n, void *in) { MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD); }
static MPI_Request network_requests[2];
static void network_shift(void *out, void *in, int n, int right, int left) {
	MPI_Irecv(in, n, MPI_BYTE, left, 0, MPI_COMM_WORLD, &network_requests[0]);
	MPI_Isend(out, n, MPI_BYTE, right, 0, MPI_COMM_WORLD, &network_requests[1]);
}
static void network_shifted(void) { MPI_Status statuses[2]; MPI_Waitall(2, network_requests, statuses); }
static int network_version(char *text) { int n = 0; MPI_Get_library_version(text, &n); return n; }
*/
import "C"

import (
	"math/bits"
	"runtime"
	"strings"
	"unsafe"

	"volley/field"
	"volley/matrix"
)

// A peer is another way to encode. Its C1 and C2 are the fewest that its messages take a
// rank that sends, and receives, one at a time.
type peer struct {
	name   string
	c1     func(k int) int
	c2     func(k int) int
	encode func(*peerWork)
}

var peers = []peer{
	{allgather, doublings, others, (*peerWork).allgather},
	{ring, others, others, (*peerWork).ring},
	{gather, func(k int) int { return 2 * doublings(k) }, func(k int) int { return 2 * others(k) }, (*peerWork).gather},
	{alltoall, others, others, (*peerWork).alltoall},
}

func others(k int) int    { return k - 1 }
func doublings(k int) int { return bits.Len(uint(k - 1)) }

// A peerWork is what the peers at one rank work with. Packets of all ranks lie one after
// the other.
type peerWork struct {
	rank, k, unit int
	x, y          []byte
	in, out       []byte      // k packets
	column        field.Map   // 1×k: this rank's coded packet of all
	from          []field.Map // 1×1: what each rank's packet adds to it
	row           field.Map   // k×1: what this rank's packet adds to each coded one
	sum           field.Map   // 1×k of ones
	whole         field.Map   // k×k, at the root
}

func newPeerWork(a matrix.Matrix, rank int, x, y []byte) *peerWork {
	k, f := a.Rows(), a.Field()
	w := &peerWork{rank: rank, k: k, unit: f.SymbolBytes(), x: x, y: y, in: make([]byte, k*len(x)), out: make([]byte, k*len(x))}
	column, row, ones := [][]field.Element{nil}, [][]field.Element{}, [][]field.Element{nil}
	for i := range k {
		column[0] = append(column[0], a.At(i, rank))
		ones[0] = append(ones[0], field.One)
		row = append(row, []field.Element{a.At(rank, i)})
		w.from = append(w.from, f.Map([][]field.Element{{a.At(i, rank)}}))
	}
	w.column, w.row, w.sum = f.Map(column), f.Map(row), f.Map(ones)
	if rank == 0 {
		all := make([][]field.Element, k)
		for j := range all {
			for i := range k {
				all[j] = append(all[j], a.At(i, j))
			}
		}
		w.whole = f.Map(all)
	}
	return w
}

func (w *peerWork) allgather() {
	C.network_allgather(at(w.x), C.int(len(w.x)), at(w.in))
	w.apply(w.column, [][]byte{w.y}, w.packets(w.in), false)
}

// ring is the way of FTI's level 3: in each round a rank sends on what came in the last
// one and codes it meanwhile.
func (w *peerWork) ring() {
	n := len(w.x)
	var pins runtime.Pinner // MPI reads and writes between calls
	defer pins.Unpin()
	pins.Pin(&w.x[0])
	pins.Pin(&w.in[0])
	current := w.x
	for round := range w.k {
		next := w.in[round%2*n:][:n]
		if round < w.k-1 {
			C.network_shift(at(current), at(next), C.int(n), C.int((w.rank+1)%w.k), C.int((w.rank+w.k-1)%w.k))
		}
		w.apply(w.from[(w.rank+w.k-round)%w.k], [][]byte{w.y}, [][]byte{current}, round > 0)
		if round < w.k-1 {
			C.network_shifted()
		}
		current = next
	}
}

func (w *peerWork) gather() {
	C.network_gather(at(w.x), C.int(len(w.x)), at(w.in))
	if w.rank == 0 {
		w.apply(w.whole, w.packets(w.out), w.packets(w.in), false)
	}
	C.network_scatter(at(w.out), C.int(len(w.x)), at(w.y))
}

func (w *peerWork) alltoall() {
	w.apply(w.row, w.packets(w.out), [][]byte{w.x}, false)
	C.network_alltoall(at(w.out), C.int(len(w.x)), at(w.in))
	w.apply(w.sum, [][]byte{w.y}, w.packets(w.in), false)
}

func (w *peerWork) packets(all []byte) [][]byte {
	list := make([][]byte, w.k)
	for i := range list {
		list[i] = all[i*len(w.x):][:len(w.x)]
	}
	return list
}

func (w *peerWork) apply(m field.Map, out, in [][]byte, add bool) { apply(m, w.unit, out, in, add) }

func at(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func barrier() { C.network_barrier() }

// assemble returns when all ranks have called it.
func assemble() { C.network_assemble() }

// greatest sets every value to the greatest of all ranks, and sum to the sum.
func greatest(v []float64) { C.network_greatest((*C.double)(unsafe.SliceData(v)), C.int(len(v))) }
func sum(v []float64)      { C.network_sum((*C.double)(unsafe.SliceData(v)), C.int(len(v))) }

// library returns the name and version of the MPI library.
func library() string {
	text := make([]byte, C.MPI_MAX_LIBRARY_VERSION_STRING)
	n := C.network_version((*C.char)(at(text)))
	name, _, _ := strings.Cut(string(text[:n]), ",")
	return strings.TrimRight(strings.Join(strings.Fields(name), " "), "\x00")
}
