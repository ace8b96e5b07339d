// How processes come together at a communicator in bounded time: nonblocking calls of MPI, one after the other.
#ifndef VOLLEY_ARRIVE_H
#define VOLLEY_ARRIVE_H

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "sleep.h"

// Why a communicator cannot be used.
enum { volley_usable, volley_early, volley_late, volley_null, volley_inter };

static int volley_running(void) {
	int is;
	if (MPI_Initialized(&is) != MPI_SUCCESS || !is) return volley_early;
	return MPI_Finalized(&is) != MPI_SUCCESS || is ? volley_late : volley_usable;
}

static int volley_check(MPI_Fint handle) {
	int is = volley_running();
	if (is != volley_usable) return is;
	MPI_Comm comm = MPI_Comm_f2c(handle);
	if (comm == MPI_COMM_NULL || comm == (MPI_Comm)0) return volley_null; // the latter where there is no such handle
	if (MPI_Comm_test_inter(comm, &is) == MPI_SUCCESS && is) return volley_inter;
	return volley_usable;
}

// With up to so many processes each hears from all who has come; with more only the first one does.
enum { volley_few = 32 };

// A volley_arrival is what MPI works on between calls. It is never given back where a call is left under way.
typedef struct {
	MPI_Request request, also;   // under way
	MPI_Comm comm;               // the duplicate
	int rank, size;
	unsigned char *here, *came;  // 1 by each process, and from those that have come
	int *counts, *zeros, *places;
	long own[2], (*all)[2];      // what each tells of itself
} volley_arrival;

static volley_arrival *volley_arrive(MPI_Fint handle, int *code) {
	volley_arrival *a = calloc(1, sizeof *a);
	MPI_Comm of = MPI_Comm_f2c(handle);
	a->request = a->also = MPI_REQUEST_NULL;
	if ((*code = MPI_Comm_rank(of, &a->rank)) != MPI_SUCCESS || (*code = MPI_Comm_size(of, &a->size)) != MPI_SUCCESS) return a;
	a->here = malloc(a->size), a->came = calloc(a->size, 1), a->all = calloc(a->size, sizeof *a->all);
	a->counts = malloc(a->size * sizeof(int)), a->zeros = calloc(a->size, sizeof(int)), a->places = malloc(a->size * sizeof(int));
	memset(a->here, 1, a->size);
	for (int i = 0; i < a->size; i++) a->counts[i] = 1, a->places[i] = i;
	return a;
}

// Each process says that it has come, and it is over when all have. In the libraries' ways to do this a process that is
// missing holds up no message of another.
static int volley_come(volley_arrival *a, MPI_Fint handle) {
	MPI_Comm of = MPI_Comm_f2c(handle);
	if (a->size <= volley_few)
		return MPI_Ialltoallv(a->here, a->counts, a->zeros, MPI_BYTE, a->came, a->counts, a->places, MPI_BYTE, of, &a->request);
	int rc = MPI_Igatherv(a->here, 1, MPI_BYTE, a->came, a->counts, a->places, MPI_BYTE, 0, of, &a->also);
	return rc == MPI_SUCCESS ? MPI_Ibarrier(of, &a->request) : rc;
}

static int volley_copy(volley_arrival *a, MPI_Fint handle) {
	return MPI_Comm_idup(MPI_Comm_f2c(handle), &a->comm, &a->request);
}

static int volley_tell(volley_arrival *a) {
	return MPI_Iallgather(a->own, 2, MPI_LONG, a->all, 2, MPI_LONG, a->comm, &a->request);
}

// volley_over tests for so many nanoseconds whether what is under way is over.
static int volley_over(volley_arrival *a, long ns, int *over) {
	for (long begun = volley_now();; sched_yield()) {
		int first = 0, second = 0, rc = MPI_Test(&a->request, &first, MPI_STATUS_IGNORE);
		if (rc == MPI_SUCCESS) rc = MPI_Test(&a->also, &second, MPI_STATUS_IGNORE);
		*over = first && second;
		if (rc != MPI_SUCCESS || *over || volley_now() - begun > ns) return rc;
	}
}

static void volley_arrived(volley_arrival *a) {
	free(a->here), free(a->came), free(a->all), free(a->counts), free(a->zeros), free(a->places), free(a);
}

#endif
