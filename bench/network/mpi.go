//go:build mpi && linux

package main

// The tags are those of package transport/mpi: one library serves both.

/*
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
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
static void network_allgather(void *x, int n, void *all, bool nonblocking) {
	MPI_Request request = MPI_REQUEST_NULL;
	if (nonblocking) MPI_Iallgather(x, n, MPI_BYTE, all, n, MPI_BYTE, MPI_COMM_WORLD, &request);
	else MPI_Allgather(x, n, MPI_BYTE, all, n, MPI_BYTE, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void network_alltoall(void *out, int n, void *in, bool nonblocking) {
	MPI_Request request = MPI_REQUEST_NULL;
	if (nonblocking) MPI_Ialltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD, &request);
	else MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void network_exchange(char *out, int n, char *in, int rank, int k) {
	MPI_Request *requests = malloc(2 * k * sizeof *requests);
	int m = 0;
	for (int d = 1; d < k; d++) {
		int from = (rank + k - d) % k;
		MPI_Irecv(in + (size_t)from * n, n, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[m++]);
	}
	for (int d = 1; d < k; d++) {
		int to = (rank + d) % k;
		MPI_Isend(out + (size_t)to * n, n, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[m++]);
	}
	MPI_Waitall(m, requests, MPI_STATUSES_IGNORE);
	free(requests);
}
static MPI_Request network_requests[2];
static void network_shift(void *out, void *in, int n, int to, int from) {
	MPI_Irecv(in, n, MPI_BYTE, from, 0, MPI_COMM_WORLD, &network_requests[0]);
	MPI_Isend(out, n, MPI_BYTE, to, 0, MPI_COMM_WORLD, &network_requests[1]);
}
static void network_shifted(void) { MPI_Status statuses[2]; MPI_Waitall(2, network_requests, statuses); }
static int network_version(char *text) { int n = 0; MPI_Get_library_version(text, &n); return n; }
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"volley/engine"
	"volley/transport"
	"volley/transport/mpi"
)

// measure is what every rank does.
func measure(args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	e, err := mpi.Init()
	if err != nil {
		return err
	}
	r := &mpiRanks{Endpoint: e}
	if s.subnet.IsValid() {
		if err := r.join(s.subnet); err != nil {
			return err
		}
	}
	if s.withTCP {
		if s.tcp, err = r.joinTCP(s.subnet); err != nil {
			return err
		}
		defer s.tcp.Close()
	}
	var label Cell
	r.Exclusive(func() { label.MPI = library() })
	err = s.measureAll(context.Background(), r, label)
	if err != nil && !errors.Is(err, errWrong) {
		return err // and mpirun ends the other ranks
	}
	return errors.Join(err, r.Close(), mpi.Finalize())
}

// mpiRanks are the ranks of an MPI job.
type mpiRanks struct {
	*mpi.Endpoint
	plain *rawExchange
}

// join connects the ranks for the raw exchange, in this network.
func (r *mpiRanks) join(network netip.Prefix) error {
	l, err := listen(network)
	if err != nil {
		return err
	}
	defer l.Close()
	r.plain, err = joinRaw(r.Rank(), l, r.tell(l.Addr().String()))
	return err
}

// joinTCP connects the ranks by TCP, in this network or on loopback.
func (r *mpiRanks) joinTCP(network netip.Prefix) (transport.Transport, error) {
	host := "127.0.0.1"
	if network.IsValid() {
		l, err := listen(network)
		if err != nil {
			return nil, err
		}
		host, _, _ = net.SplitHostPort(l.Addr().String())
		l.Close()
	}
	run := engine.Run{Rank: r.Rank(), Size: r.Size(), Bind: host, Advertise: host}
	secret, err := engine.NewSecret().MarshalText()
	if err != nil {
		return nil, err
	}
	if err := run.Secret.UnmarshalText([]byte(r.tell(string(secret))[0])); err != nil {
		return nil, err
	}
	listener, err := engine.Listen(run)
	if err != nil {
		return nil, err
	}
	return listener.Join(context.Background(), r.tell(listener.Address()), time.Minute)
}

// tell returns what all ranks tell, in at most 64 bytes.
func (r *mpiRanks) tell(text string) []string {
	const length = 64
	all := make([]byte, length*r.Size())
	mine := make([]byte, length)
	copy(mine, text)
	r.Exclusive(func() { r.allgather(mine, all, false) })
	texts := make([]string, r.Size())
	for i := range texts {
		texts[i] = strings.TrimRight(string(all[i*length:][:length]), "\x00")
	}
	return texts
}

// listen listens at this host's address in the network.
func listen(network netip.Prefix) (net.Listener, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && network.Contains(p.Addr()) {
			return net.Listen("tcp", net.JoinHostPort(p.Addr().String(), "0"))
		}
	}
	return nil, fmt.Errorf("raw exchange: this host has no address in %s", network)
}

func at(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func (r *mpiRanks) barrier()  { C.network_barrier() }
func (r *mpiRanks) assemble() { C.network_assemble() }

func (r *mpiRanks) greatest(v []float64) {
	C.network_greatest((*C.double)(unsafe.SliceData(v)), C.int(len(v)))
}

func (r *mpiRanks) sum(v []float64) {
	C.network_sum((*C.double)(unsafe.SliceData(v)), C.int(len(v)))
}

func (r *mpiRanks) allgather(x, all []byte, nonblocking bool) {
	C.network_allgather(at(x), C.int(len(x)), at(all), C.bool(nonblocking))
}

func (r *mpiRanks) alltoall(out, in []byte, nonblocking bool) {
	C.network_alltoall(at(out), C.int(len(out)/r.Size()), at(in), C.bool(nonblocking))
}

// used returns the seconds of CPU that this process has taken so far.
func (r *mpiRanks) used() float64 {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u) // fails for no such argument
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func (r *mpiRanks) exchange(out, in []byte) {
	C.network_exchange((*C.char)(at(out)), C.int(len(out)/r.Size()), (*C.char)(at(in)), C.int(r.Rank()), C.int(r.Size()))
}

func (r *mpiRanks) shift(out, in []byte, to, from int) (wait func()) {
	var pins runtime.Pinner // MPI reads and writes between calls
	pins.Pin(&out[0])
	pins.Pin(&in[0])
	C.network_shift(at(out), at(in), C.int(len(out)), C.int(to), C.int(from))
	return func() {
		C.network_shifted()
		pins.Unpin()
	}
}

func (r *mpiRanks) raw(out, in []byte) error { return r.plain.exchange(out, in) }

// library returns the name and version of the MPI library.
func library() string {
	text := make([]byte, C.MPI_MAX_LIBRARY_VERSION_STRING)
	n := C.network_version((*C.char)(at(text)))
	name, _, _ := strings.Cut(string(text[:n]), ",")
	return strings.TrimRight(strings.Join(strings.Fields(name), " "), "\x00")
}
