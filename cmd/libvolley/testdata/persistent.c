/* Calls of the memory that processes share, and of encodes that are run many times. "multiple" has threads, too; "open"
 * leaves requests to MPI_Finalize. */
#include <pthread.h>
#include "check.h"

enum { BYTES = 70000 };

static unsigned char *memory(MPI_Comm comm, size_t bytes) {
	void *data = NULL;
	expect("alloc", volley_alloc(comm, bytes, &data), VOLLEY_OK, "");
	for (size_t i = 0; i < bytes; i++) {
		if (((unsigned char *)data)[i] != 0) expect("new memory is zero", -1, 0, "");
	}
	return data;
}

/* runs runs a request on several packets, and compares with volley_encode. Then it frees the request. */
static void runs(const char *what, MPI_Comm comm, unsigned char *x, size_t bytes, unsigned char *y, size_t room, const volley_options *o) {
	static unsigned char want[BYTES];
	volley_request request = 7;
	expect(what, volley_encode_init(comm, x, bytes, y, room, o, &request), VOLLEY_OK, "");
	for (int run = 0; run < 3; run++) {
		for (size_t i = 0; i < bytes; i++) x[i] = (unsigned char)(i * i + 31 * i * rank + 7 * run + rank);
		expect(what, volley_encode(MPI_COMM_WORLD, x, bytes, want, room, o), VOLLEY_OK, "");
		memset(y, 0, room);
		expect(what, volley_run(&request), VOLLEY_OK, "");
		if (memcmp(y, want, room) != 0) expect(what, -1, 0, "another coded packet");
		MPI_Barrier(MPI_COMM_WORLD); /* others code from x */
	}
	volley_request copy = request;
	expect(what, volley_request_free(&request), VOLLEY_OK, "");
	if (request != VOLLEY_REQUEST_NULL) expect("a freed request", request, VOLLEY_REQUEST_NULL, "");
	expect("free nothing", volley_request_free(&request), VOLLEY_OK, "");
	expect("free twice", volley_request_free(&copy), VOLLEY_USAGE, "freed before");
	expect("run after free", volley_run(&copy), VOLLEY_USAGE, "freed before");
	expect("run nothing", volley_run(&request), VOLLEY_USAGE, "request");
}

static void encodes(void) {
	static unsigned char mine[BYTES], other[BYTES];
	unsigned char *x = memory(MPI_COMM_WORLD, BYTES), *y = memory(MPI_COMM_WORLD, BYTES);
	MPI_Comm comm, turned;
	runs("in shared memory", MPI_COMM_WORLD, x, BYTES, y, BYTES, NULL);
	runs("in two halves of one", MPI_COMM_WORLD, x, 30000, x + 40000, 30000, NULL);
	runs("unchecked", MPI_COMM_WORLD, x, BYTES, y, BYTES, &(volley_options){.unchecked = 1});
	runs("in other memory", MPI_COMM_WORLD, mine, BYTES, other, BYTES, NULL);
	runs("partly", MPI_COMM_WORLD, x, BYTES, other, BYTES, NULL);
	runs("at some", MPI_COMM_WORLD, rank == 0 ? x : mine, BYTES, y, BYTES, NULL);
	runs("of different lengths", MPI_COMM_WORLD, x, 3000 + rank, y, 2999 + size, NULL);
	runs("as messages", MPI_COMM_WORLD, x, BYTES, y, BYTES, &(volley_options){.ports = 1});
	runs("empty", MPI_COMM_WORLD, x, 0, y, 0, NULL);
	runs("symbols of two bytes", MPI_COMM_WORLD, x, BYTES, y, BYTES, &(volley_options){.field = "2^16"});

	/* A communicator of the same processes in another order does not have the parts of memory in its order. */
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
	unsigned char *v = memory(turned, BYTES);
	runs("memory of another communicator", MPI_COMM_WORLD, v, BYTES, y, BYTES, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	runs("a duplicate", comm, x, BYTES, y, BYTES, NULL);
	volley_request request;
	expect("init", volley_encode_init(comm, x, BYTES, y, BYTES, NULL, &request), VOLLEY_OK, "");
	MPI_Comm_free(&comm);
	MPI_Comm_free(&turned);
	expect("the communicator is freed", volley_run(&request), VOLLEY_OK, "");
	expect("used memory", volley_free(x), VOLLEY_USAGE, "1 requests");
	expect("used memory", volley_free(y), VOLLEY_USAGE, "volley_request_free");
	expect("request_free", volley_request_free(&request), VOLLEY_OK, "");
	expect("free", volley_free(x), VOLLEY_OK, "");
	expect("free twice", volley_free(x), VOLLEY_USAGE, "freed before");
	expect("within", volley_free(y + 8), VOLLEY_USAGE, "volley_alloc");
	expect("a wrong pointer", volley_free(mine), VOLLEY_USAGE, "volley_alloc");
	expect("NULL", volley_free(NULL), VOLLEY_OK, "");
	expect("free", volley_free(v), VOLLEY_OK, "");
	expect("free", volley_free(y), VOLLEY_OK, "");
}

/* misuse has one process, or all, give wrong arguments: all return VOLLEY_USAGE, and the communicator works. */
static void misuse(void) {
	static unsigned char mine[BYTES], other[BYTES];
	int last = rank == size - 1;
	volley_request request = 5, none = 12345;
	void *data = &request;
	MPI_Comm world = MPI_COMM_WORLD;
	expect("NULL for data", volley_alloc(world, 10, last ? NULL : &data), VOLLEY_USAGE, "data: NULL");
	if (!last && data != NULL) expect("memory of a call that failed", -1, 0, "");
	expect("too long", volley_alloc(world, last ? (size_t)-1 : 10, &data), VOLLEY_USAGE, "no memory is as long");
	if (size > 1) expect("different lengths", volley_alloc(world, 10 + last, &data), VOLLEY_USAGE, "in bytes (11, not 10)");
	expect("NULL for the request", volley_encode_init(world, mine, 10, other, 10, NULL, last ? NULL : &request), VOLLEY_USAGE, "request: NULL");
	if (!last && request != VOLLEY_REQUEST_NULL) expect("a request of a call that failed", -1, 0, "");
	expect("NULL for a packet", volley_encode_init(world, last ? NULL : mine, 10, other, 10, NULL, &request), VOLLEY_USAGE, "packet: NULL");
	expect("overlap", volley_encode_init(world, mine, 10, last ? mine + 9 : other, 10, NULL, &request), VOLLEY_USAGE, "overlaps");
	expect("no room", volley_encode_init(world, mine, 10, other, 10 - last, NULL, &request), VOLLEY_USAGE, "coded_bytes: 9");
	expect("half a symbol", volley_encode_init(world, mine, 10 - last, other, 10, &(volley_options){.field = "2^16"}, &request), VOLLEY_USAGE, "have 2 bytes");
	expect("no such matrix", volley_encode_init(world, mine, 10, other, 10, &(volley_options){.matrix = last ? "no such" : NULL}, &request), VOLLEY_USAGE, "no such");
	if (size > 1) {
		expect("other options", volley_encode_init(world, mine, 10, other, 10, &(volley_options){.unchecked = last}, &request), VOLLEY_USAGE, "check");
		if (last) expect("another function", volley_alloc(world, 10, &data), VOLLEY_USAGE, "");
		else expect("another function", volley_encode(world, mine, 10, other, 10, NULL), VOLLEY_USAGE, "");
	}
	expect("no such request", volley_run(&none), VOLLEY_USAGE, "12345");
	expect("NULL", volley_run(NULL), VOLLEY_USAGE, "NULL");
	expect("init", volley_encode_init(world, mine, 10, other, 10, NULL, &request), VOLLEY_OK, "");
	expect("wait", volley_wait(&request), VOLLEY_USAGE, "volley_run");
	expect("cancel", volley_cancel(&request), VOLLEY_USAGE, "volley_run");
	expect("all that was no harm", volley_run(&request), VOLLEY_OK, "");
	expect("request_free", volley_request_free(&request), VOLLEY_OK, "");
}

/* late has a process not come to a run: the others name it, and that request is at its end at all of them. */
static void late(void) {
	static unsigned char mine[BYTES], other[BYTES];
	volley_request request, second;
	volley_options o = {.timeout = 0.3};
	char who[100];
	snprintf(who, sizeof who, "%d", size - 1);
	expect("init", volley_encode_init(MPI_COMM_WORLD, mine, 10, other, 10, &o, &request), VOLLEY_OK, "");
	expect("init", volley_encode_init(MPI_COMM_WORLD, mine, 10, other, 10, NULL, &second), VOLLEY_OK, "");
	if (rank != size - 1) expect("without one", volley_run(&request), VOLLEY_FAILED, who);
	MPI_Barrier(MPI_COMM_WORLD);
	expect("afterwards", volley_run(&request), VOLLEY_FAILED, "");
	expect("and again", volley_run(&request), VOLLEY_FAILED, "has failed");
	expect("another request", volley_run(&second), VOLLEY_OK, "");
	expect("request_free", volley_request_free(&request), VOLLEY_OK, "");
	expect("request_free", volley_request_free(&second), VOLLEY_OK, "");
}

static volley_request shared[4];

static void *many(void *which) {
	volley_request *request = which;
	for (int i = 0; i < 20; i++) expect("in a thread", volley_run(request), VOLLEY_OK, "");
	return NULL;
}

/* threads run several requests at once. */
static void threads(void) {
	pthread_t list[4];
	unsigned char *x = memory(MPI_COMM_WORLD, BYTES), *y = memory(MPI_COMM_WORLD, 4 * BYTES);
	for (int i = 0; i < 4; i++) {
		volley_options o = {.ports = i % 2};
		expect("init", volley_encode_init(MPI_COMM_WORLD, x, BYTES, y + i * BYTES, BYTES, &o, &shared[i]), VOLLEY_OK, "");
	}
	for (int i = 0; i < 4; i++) pthread_create(&list[i], NULL, many, &shared[i]);
	for (int i = 0; i < 4; i++) pthread_join(list[i], NULL);
	for (int i = 0; i < 4; i++) expect("request_free", volley_request_free(&shared[i]), VOLLEY_OK, "");
	expect("free", volley_free(x), VOLLEY_OK, "");
	expect("free", volley_free(y), VOLLEY_OK, "");
}

int main(int argc, char **argv) {
	int multiple = strcmp(argv[1], "multiple") == 0;
	static unsigned char mine[BYTES], other[BYTES];
	volley_request request = VOLLEY_REQUEST_NULL;
	begin(&argc, &argv, multiple);
	unsigned char *x = memory(MPI_COMM_WORLD, BYTES);
	if (strcmp(argv[1], "open") == 0) {
		expect("init", volley_encode_init(MPI_COMM_WORLD, x, 10, other, 10, NULL, &request), VOLLEY_OK, "");
		expect("run", volley_run(&request), VOLLEY_OK, "");
	} else {
		encodes();
		misuse();
		if (size > 1) late();
		if (multiple) threads();
	}
	MPI_Finalize();
	if (request != VOLLEY_REQUEST_NULL) {
		expect("run at the end", volley_run(&request), VOLLEY_USAGE, "finalised");
		expect("request_free at the end", volley_request_free(&request), VOLLEY_USAGE, "finalised");
	} else expect("free at the end", volley_free(x), VOLLEY_OK, "");
	expect("init at the end", volley_encode_init(MPI_COMM_WORLD, mine, 10, other, 10, NULL, &request), VOLLEY_USAGE, "finalised");
	if (rank == 0 && !wrong) printf("done\n");
	return wrong;
}
