// Attributes of communicators, by which arrivals are found again and MPI's end waits.
#ifndef VOLLEY_KEEP_H
#define VOLLEY_KEEP_H

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

extern void volleyForget(int);
extern void volleyFinish(void);

// volley_signal_stack gives this thread a signal stack, for good, unless it has one. A signal that meets Go code without
// one ends the process. Python's faulthandler takes its stack away before MPI ends.
static void volley_signal_stack(void) {
	const size_t size = 1 << 16;
	stack_t stack;
	if (sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_DISABLE)) return;
	stack = (stack_t){.ss_sp = malloc(size), .ss_size = size};
	if (stack.ss_sp != NULL) sigaltstack(&stack, NULL);
}

// volley_forget is called when a communicator is freed, or its attribute deleted; at MPI's end nothing can be freed.
static int volley_forget(MPI_Comm comm, int key, void *id, void *extra) {
	int ended = 0;
	MPI_Finalized(&ended);
	if (ended) return MPI_SUCCESS;
	volley_signal_stack();
	volleyForget((int)(long)id);
	return MPI_SUCCESS;
}

// volley_key is the key of the attribute that names an arrival, which a duplicate does not have.
static int volley_key(int *key) {
	static int made = MPI_KEYVAL_INVALID;
	int rc = made != MPI_KEYVAL_INVALID ? MPI_SUCCESS : MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, volley_forget, &made, NULL);
	*key = made;
	return rc;
}

// volley_finish is called by MPI_Finalize, before anything else.
static int volley_finish(MPI_Comm comm, int key, void *value, void *extra) {
	volley_signal_stack();
	volleyFinish();
	return MPI_SUCCESS;
}

static int volley_before_finalize(void) {
	static int key = MPI_KEYVAL_INVALID;
	if (key != MPI_KEYVAL_INVALID) return MPI_SUCCESS;
	int rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, volley_finish, &key, NULL);
	return rc == MPI_SUCCESS ? MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) : rc;
}

static int volley_kept(MPI_Fint comm, int *id) {
	int key, there = 0;
	void *value;
	int rc = volley_key(&key);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_get_attr(MPI_Comm_f2c(comm), key, &value, &there);
	*id = there ? (int)(long)value : 0;
	return rc;
}

static int volley_keep(MPI_Fint comm, int id) {
	int key;
	int rc = volley_key(&key);
	return rc == MPI_SUCCESS ? MPI_Comm_set_attr(MPI_Comm_f2c(comm), key, (void *)(long)id) : rc;
}

#endif
