// How this package calls MPI: what is a macro in one library and a variable in another, and many requests in one call,
// as a call from Go costs more than most of MPI's.
#ifndef VOLLEY_CALLS_H
#define VOLLEY_CALLS_H

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include "sleep.h"

// What are macros in one library and variables in another.
static MPI_Datatype volley_long(void) { return MPI_LONG; }
static MPI_Comm volley_world(void) { return MPI_COMM_WORLD; }

static int volley_init(int *provided) {
	int flag;
	int rc = MPI_Initialized(&flag);
	if (rc == MPI_SUCCESS && flag) return MPI_Query_thread(provided);
	if (rc != MPI_SUCCESS) return rc;
	return MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, provided);
}

static int volley_identify(MPI_Comm comm, int *rank, int *size, int *most) {
	int *bound, flag, rc = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_rank(comm, rank);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_size(comm, size);
	if (rc != MPI_SUCCESS) return rc;
	rc = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
	*most = rc == MPI_SUCCESS && flag ? *bound : 32767;
	return MPI_SUCCESS;
}

// A volley_fragment is memory to be sent or received as one message. Its address is a number: a
// pointer into Go's memory is not kept in C's.
typedef struct {
	unsigned long at;
	int bytes, rank, tag, send, index, weight;
} volley_fragment;

// A volley_end is what a request that is over came to: bytes are -1 where it was cancelled.
typedef struct {
	int index, bytes, from, code;
} volley_end;

// volley_requests are lists of requests, and which of them were over in the last call.
typedef struct {
	int count, room, over;
	MPI_Request *requests;
	MPI_Status *statuses;
	int *indices, *weights;
	volley_end *ends;
	long quiet;  // for how long nothing had come before what came last, in ns
} volley_requests;

// volley_add makes room for a request.
static void volley_add(volley_requests *r) {
	if (r->count == r->room) {
		int n = r->room = r->room ? 2 * r->room : 64;
		r->requests = realloc(r->requests, n * sizeof *r->requests);
		r->statuses = realloc(r->statuses, n * sizeof *r->statuses);
		r->indices = realloc(r->indices, n * sizeof *r->indices);
		r->weights = realloc(r->weights, n * sizeof *r->weights);
		r->ends = realloc(r->ends, n * sizeof *r->ends);
	}
	r->requests[r->count++] = MPI_REQUEST_NULL;
}

// volley_drop gives the lists back.
static void volley_drop(volley_requests *r) {
	free(r->requests), free(r->statuses), free(r->indices), free(r->weights), free(r->ends);
	*r = (volley_requests){0};
}

// volley_post posts fragments until one fails, and tells how many it has.
static int volley_post(int count, const volley_fragment *fragments, MPI_Comm comm, volley_requests *r, int *posted) {
	for (*posted = 0; *posted < count; ++*posted) {
		const volley_fragment *p = &fragments[*posted];
		MPI_Request *request = &r->requests[p->index];
		r->weights[p->index] = p->weight;
		int rc = p->send ? MPI_Isend((void *)p->at, p->bytes, MPI_BYTE, p->rank, p->tag, comm, request) :
			MPI_Irecv((void *)p->at, p->bytes, MPI_BYTE, p->rank < 0 ? MPI_ANY_SOURCE : p->rank, p->tag, comm, request);
		if (rc != MPI_SUCCESS) {
			for (int i = *posted; i < count; i++) r->requests[fragments[i].index] = MPI_REQUEST_NULL;
			return rc;
		}
	}
	return MPI_SUCCESS;
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

// volley_peek tells of the first message from a rank that no receive was waiting for.
static int volley_peek(int src, MPI_Comm comm, int *there, int *tag) {
	MPI_Status status;
	int rc = MPI_Iprobe(src, MPI_ANY_TAG, comm, there, &status);
	if (rc == MPI_SUCCESS && *there) *tag = status.MPI_TAG;
	return rc;
}

// volley_poll adds the requests that are over by now to the ends.
static int volley_poll(volley_requests *r) {
	int found = 0, rc = MPI_Testsome(r->count, r->requests, &found, r->indices, r->statuses), class = MPI_SUCCESS;
	if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
	if (rc != MPI_SUCCESS && class != MPI_ERR_IN_STATUS) return rc;
	if (found == MPI_UNDEFINED) found = 0;
	for (int i = 0; i < found; i++) {
		MPI_Status *status = &r->statuses[i];
		volley_end *e = &r->ends[r->over++];
		int cancelled = 0;
		e->index = r->indices[i];
		e->code = class == MPI_ERR_IN_STATUS ? status->MPI_ERROR : MPI_SUCCESS;
		e->from = status->MPI_SOURCE;
		MPI_Test_cancelled(status, &cancelled);
		if (cancelled) e->bytes = -1;
		else MPI_Get_count(status, MPI_BYTE, &e->bytes);
	}
	return MPI_SUCCESS;
}

// How the process sleeps between polls. Sockets wake it where by experience they bring what is over.
static int volley_trust;   // how often it did of late
static long volley_found;  // when sockets were looked for,
static long volley_search; // and how long that took

// Until when a wait for another machine spins for 1 ms at most: others had taken the core from a spin.
static long volley_taken;

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

// volley_poll_for polls until requests of the weight are over, another thread wants MPI, or so many
// nanoseconds have passed. It spins until nothing has come for so long, and then sleeps between
// polls for a sixth of that time, or of the time since one was over or, where that
// is more, as it has been between them; for longer where a socket will wake it.
static int volley_poll_for(volley_requests *r, int weight, long waited, long idle, long pace, long limit, long spin,
	bool apart, bool crowded, volatile int *wanted) {
	const long least = 20000, most = 5000000, share = 6;
	enum { polled, woken, late, napped } after = polled;
	long begun = volley_now(), before = 0;
	int spun = 0;
	for (;;) {
		int had = r->over;
		int rc = volley_poll(r);
		long passed = volley_now() - begun;
		if (spun && apart && passed - before > 1000000) volley_taken = begun + passed + 300 * (passed - before);
		before = passed;
		if (r->over > had) {
			if (after == woken || after == late) volley_learn(after == woken);
			for (; had < r->over; had++) weight -= r->weights[r->ends[had].index];
			r->quiet = waited + passed;
			waited = idle = -passed;
		}
		if (rc != MPI_SUCCESS || r->over > 0 && weight <= 0 || *wanted > 0 || passed > limit) return rc;
		spun = waited + passed < (apart && begun + passed < volley_taken ? 1000000 : spin);
		if (spun) {
			// To a rank that has something to send. In short waits the library yields: to do so twice costs two switches.
			if (crowded && waited + passed > 1000000) sched_yield();
			continue;
		}
		long d = waited + passed, e = idle + passed > pace ? idle + passed : pace;
		d = (d < e ? d : e) / share;
		d = d < least ? least : d > most ? most : d;
		if (after == woken) { // by a part of a message, or something that is not MPI's
			volley_sleep(d < 500000 ? d : 500000, 0);
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

#endif
