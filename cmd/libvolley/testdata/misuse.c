/* Calls that MPI would end the job for, or that would never end. Every function of volley.h returns an error instead.
 * "multiple" has requests, too. */
#include "check.h"

static unsigned char x[100], y[100], parity[10000];
static volley_buffer list = {x, sizeof x};

/* all calls every function with a communicator that none can use. */
static void all(MPI_Comm comm, const char *text) {
	size_t room = sizeof parity, bytes[1];
	int count = 1;
	volley_request request = 5;
	volley_report report;
	expect("encode", volley_encode(comm, x, 100, y, 100, NULL), VOLLEY_USAGE, text);
	expect("decode", volley_decode(comm, x, 100, 0, y, 100, NULL), VOLLEY_USAGE, text);
	expect("protect", volley_protect(comm, "/nowhere", 1, NULL), VOLLEY_USAGE, text);
	expect("recover", volley_recover(comm, "/nowhere", NULL), VOLLEY_USAGE, text);
	expect("verify", volley_verify(comm, "/nowhere", NULL, &report), VOLLEY_USAGE, text);
	expect("status", volley_status(comm, "/nowhere", NULL, &report), VOLLEY_USAGE, text);
	expect("unprotect", volley_unprotect(comm, "/nowhere", NULL), VOLLEY_USAGE, text);
	expect("recover_start", volley_recover_start(comm, "/nowhere", NULL, &request), VOLLEY_USAGE, text);
	expect("parity_bytes", volley_parity_bytes(comm, &list, 1, 1, NULL, &room), VOLLEY_USAGE, text);
	expect("protect_buffers", volley_protect_buffers(comm, &list, 1, 1, parity, sizeof parity, NULL), VOLLEY_USAGE, text);
	expect("recover_buffers", volley_recover_buffers(comm, &list, 1, 0, parity, sizeof parity, NULL), VOLLEY_USAGE, text);
	expect("buffer_sizes", volley_buffer_sizes(comm, parity, &room, bytes, &count, NULL), VOLLEY_USAGE, text);
	expect("protect_start", volley_protect_start(comm, "/nowhere", 1, NULL, &request), VOLLEY_USAGE, text);
	if (request != VOLLEY_REQUEST_NULL) expect("a request of a call that failed", -1, 0, "");
	expect("protect_buffers_start", volley_protect_buffers_start(comm, &list, 1, 1, parity, sizeof parity, NULL, &request), VOLLEY_USAGE, text);
	expect("recover_buffers_start", volley_recover_buffers_start(comm, &list, 1, 0, parity, sizeof parity, NULL, &request), VOLLEY_USAGE, text);
	void *data = x;
	expect("alloc", volley_alloc(comm, 10, &data), VOLLEY_USAGE, text);
	if (data != NULL) expect("memory of a call that failed", -1, 0, "");
	expect("encode_init", volley_encode_init(comm, x, 100, y, 100, NULL, &request), VOLLEY_USAGE, text);
	expect("wait for nothing", volley_wait(&request), VOLLEY_OK, "");
}

/* late has one rank come to each function after the others have given up. Then all come again. */
static void late(int missing, int multiple) {
	char who[100];
	MPI_Comm comm;
	volley_options o = {.timeout = 0.3}, again = {.timeout = 20};
	volley_group_options g = {.timeout = 0.3};
	size_t room, count_bytes = 0;
	int count = 0, none = 0;
	volley_request request;
	snprintf(who, sizeof who, size > 32 && rank > 0 ? "rank 0 tells" : "rank %d has not called: call again", missing);
	for (int turn = 0; turn < (multiple ? 4 : 3); turn++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		double begun = MPI_Wtime();
		if (rank != missing) {
			if (turn == 0) expect("encode without all", volley_encode(comm, x, 100, y, 100, &o), VOLLEY_FAILED, who);
			if (turn == 1) expect("protect without all", volley_protect(comm, "/nowhere", 1, &g), VOLLEY_FAILED, who);
			if (turn == 2) expect("parity_bytes without all", volley_parity_bytes(comm, &list, 1, 1, &g, &room), VOLLEY_FAILED, who);
			if (turn == 3) expect("start without all", volley_protect_buffers_start(comm, &list, 1, 1, parity, sizeof parity, &g, &request), VOLLEY_FAILED, who);
			if (MPI_Wtime() - begun > 10) expect("it takes long to give up", -1, 0, "");
			MPI_Send(&none, 1, MPI_INT, missing, 7, MPI_COMM_WORLD);
		} else {
			for (int i = 1; i < size; i++) MPI_Recv(&none, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (turn == 0) expect("encode after all", volley_encode(comm, x, 100, y, 100, &o), VOLLEY_FAILED, "given up before");
		}
		MPI_Barrier(comm); /* the communicator works */
		expect("encode again", volley_encode(comm, x, 100, y, 100, &again), VOLLEY_OK, "");
		expect("and once more", volley_encode(comm, x, 100, y, 100, &again), VOLLEY_OK, "");
		if (turn != 1) MPI_Comm_free(&comm);
	}
	if (rank != missing) { /* it never comes, and MPI ends all the same */
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		expect("without one that never comes", volley_buffer_sizes(comm, NULL, &count_bytes, NULL, &count, &g), VOLLEY_FAILED, who);
	} else MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

int main(int argc, char **argv) {
	int multiple = strcmp(argv[1], "multiple") == 0;
	all(MPI_COMM_WORLD, "MPI is not initialised");
	begin(&argc, &argv, multiple);
	all(MPI_COMM_NULL, "MPI_COMM_NULL");
	expect("no such Fortran handle", volley_encode_f(MPI_Comm_c2f(MPI_COMM_NULL), x, 100, y, 100, NULL), VOLLEY_USAGE, "MPI_COMM_NULL");
	if (size > 1) {
		MPI_Comm half, inter;
		MPI_Comm_split(MPI_COMM_WORLD, rank < (size + 1) / 2, rank, &half);
		MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < (size + 1) / 2 ? (size + 1) / 2 : 0, 1, &inter);
		all(inter, "intercommunicator");
		MPI_Comm_free(&inter);
		MPI_Comm_free(&half);
		late(size - 1, multiple);
		late(0, multiple);
	}
	MPI_Finalize();
	all(MPI_COMM_WORLD, "MPI is finalised");
	if (rank == 0 && !wrong) printf("done\n");
	return wrong;
}
