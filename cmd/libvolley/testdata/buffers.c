/* Buffers and requests: what the calls return, with errors in between. "single" has MPI let one thread call it. "memory"
 * measures what protecting takes. "finalize" ends MPI while a request is open, and "signals" does
 * so in a thread without a signal stack, which gets signals. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include "check.h"

enum { buffers = 3 };

/* make makes buffers of lengths that depend on the rank, full of numbers that depend on the seed. */
static void make(volley_buffer *b, size_t bytes, int seed) {
	for (int i = 0; i < buffers; i++) {
		b[i].bytes = i == 1 ? 0 : bytes * (i + 1) + 10 * rank;
		b[i].data = b[i].bytes ? malloc(b[i].bytes) : NULL;
		for (size_t j = 0; j < b[i].bytes; j++) ((unsigned char *)b[i].data)[j] = seed + 31 * j + 7 * rank + j / 256;
	}
}

static int same(const volley_buffer *a, const volley_buffer *b) {
	for (int i = 0; i < buffers; i++)
		if (a[i].bytes != b[i].bytes || (a[i].bytes && memcmp(a[i].data, b[i].data, a[i].bytes) != 0)) return 0;
	return 1;
}

static void drop(volley_buffer *b) {
	for (int i = 0; i < buffers; i++) free(b[i].data);
}

/* recovers loses the buffers and the parity of ranks from first on, count of them, and brings them back. */
static void recovers(MPI_Comm comm, const volley_buffer *want, const unsigned char *parity, size_t room, int first, int count, int start) {
	int lost = (rank - first + size) % size < count, n = buffers;
	size_t bytes[buffers], parity_bytes = room;
	expect("sizes", volley_buffer_sizes(comm, lost ? NULL : parity, &parity_bytes, bytes, &n, NULL), VOLLEY_OK, "");
	expect("sizes, without room for them", volley_buffer_sizes(comm, lost ? NULL : parity, &parity_bytes, NULL, &n, NULL), VOLLEY_OK, "");
	if (n != buffers || parity_bytes != room) expect("sizes, what they are", n, buffers, "");
	volley_buffer back[buffers];
	unsigned char *again = malloc(parity_bytes);
	memset(again, 7, parity_bytes);
	for (int i = 0; i < buffers; i++) {
		back[i] = (volley_buffer){malloc(bytes[i] + 1), bytes[i]};
		if (lost || bytes[i] == 0) memset(back[i].data, 7, bytes[i]);
		else memcpy(back[i].data, want[i].data, bytes[i]);
	}
	if (!lost) memcpy(again, parity, room);
	volley_request request;
	if (start) {
		expect("start to recover", volley_recover_buffers_start(comm, back, buffers, lost, again, parity_bytes, NULL, &request), VOLLEY_OK, "");
		expect("wait", volley_wait(&request), VOLLEY_OK, "");
	} else expect("recover", volley_recover_buffers_f(MPI_Comm_c2f(comm), back, buffers, lost, again, parity_bytes, NULL), VOLLEY_OK, "");
	if (!same(back, want)) expect("what comes back", -1, 0, "");
	if (strcmp(volley_error(), "") != 0) expect("nothing is damaged", -1, 0, "");
	if (rank == size - 1) ((unsigned char *)back[2].data)[5] ^= 1;
	expect("recover what is damaged", volley_recover_buffers(comm, back, buffers, 0, again, parity_bytes, NULL), VOLLEY_OK, "has 1 damaged or changed blocks");
	if (!same(back, want)) expect("what was damaged", -1, 0, "");
	free(again);
	drop(back);
}

/* overlaps gives memory twice, at all processes and at one. */
static void overlaps(unsigned char *parity, size_t room, int multiple) {
	enum { bytes = 1000 };
	unsigned char x[4 * bytes] = {0}, *own = malloc(room);
	volley_buffer twice[] = {{x, 3 * bytes}, {x + 5, 10}, {x + bytes, 2 * bytes}, {NULL, 0}, {x + 3 * bytes, bytes}}, in[] = {{own + room - 1, 1}};
	volley_request request;
	expect("protect what overlaps", volley_protect_buffers(MPI_COMM_WORLD, twice, 5, 1, parity, room, NULL), VOLLEY_OK, "");
	expect("recover what overlaps", volley_recover_buffers(MPI_COMM_WORLD, twice, 5, 0, parity, room, NULL), VOLLEY_USAGE, "buffers[1] overlaps buffers[0]");
	expect("parity in a buffer", volley_protect_buffers(MPI_COMM_WORLD, in, 1, 1, own, room, NULL), VOLLEY_USAGE, "buffers[0] overlaps parity");
	if (multiple) {
		expect("start", volley_protect_buffers_start(MPI_COMM_WORLD, in, 1, 1, own, room, NULL, &request), VOLLEY_OK, "");
		expect("its end", volley_wait(&request), VOLLEY_USAGE, "buffers[0] overlaps parity");
	}
	expect("encode in place", volley_encode(MPI_COMM_WORLD, x, bytes, x + bytes - 1, bytes, NULL), VOLLEY_USAGE, "coded overlaps packet");
	free(own);
}

static void *waits(void *request) {
	int rc = volley_wait(request);
	if (rc == VOLLEY_USAGE && strstr(volley_error(), "no request") == NULL) rc = -1;
	return (void *)(long)rc;
}

static void requests(void) {
	enum { open = 4 };
	volley_buffer b[open][buffers];
	unsigned char *parity[open];
	size_t room[open];
	volley_request request[open], null = VOLLEY_REQUEST_NULL, copy;
	int done;
	for (int i = 0; i < open; i++) {
		make(b[i], 100000 * (i + 1), i);
		expect("bytes", volley_parity_bytes(MPI_COMM_WORLD, b[i], buffers, 1, NULL, &room[i]), VOLLEY_OK, "");
		parity[i] = malloc(room[i]);
	}
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < open; i++) { /* the list of buffers is copied, and options */
			volley_buffer list[buffers];
			char digest[] = "xxh3";
			volley_group_options o = {.digest = digest};
			memcpy(list, b[i], sizeof list);
			expect("start", volley_protect_buffers_start(MPI_COMM_WORLD, list, buffers, 1, parity[i], room[i], &o, &request[i]), VOLLEY_OK, "");
			memset(list, 0, sizeof list);
			memset(digest, 0, sizeof digest);
		}
		unsigned char x[1000] = {0}, y[1000]; /* MPI and other calls go on meanwhile */
		MPI_Allreduce(MPI_IN_PLACE, x, sizeof x, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
		expect("encode beside", volley_encode(MPI_COMM_WORLD, x, sizeof x, y, sizeof y, NULL), VOLLEY_OK, "");
		copy = request[0];
		if (rank % 2 == 0) expect("wait", volley_wait(&request[0]), VOLLEY_OK, "");
		else
			do expect("test", volley_test(&request[0], &done), VOLLEY_OK, "");
			while (!done);
		if (request[0] != VOLLEY_REQUEST_NULL) expect("a request that is over", -1, 0, "");
		expect("wait twice", volley_wait(&request[0]), VOLLEY_OK, "");
		expect("wait by a copy", volley_wait(&copy), VOLLEY_USAGE, "no request");
		expect("test what is none", volley_test(&null, &done), VOLLEY_OK, "");
		if (!done) expect("nothing is over", -1, 0, "");
		pthread_t threads[2]; /* two threads wait for one request, and one gets it */
		volley_request two[2] = {request[1], request[1]};
		void *rc[2];
		for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, waits, &two[i]);
		for (int i = 0; i < 2; i++) pthread_join(threads[i], &rc[i]);
		if ((long)rc[0] + (long)rc[1] != VOLLEY_OK + VOLLEY_USAGE) expect("two threads", -1, 0, "");
		for (int i = open - 1; i > 1; i--) expect("wait for the last first", volley_wait(&request[i]), VOLLEY_OK, "");
		for (int i = 0; i < open; i++) recovers(MPI_COMM_WORLD, b[i], parity[i], room[i], turn, size > 2, turn == 1);
	}
	expect("start, other numbers", volley_protect_buffers_start(MPI_COMM_WORLD, b[0], buffers, 1 + rank % 2, parity[0], room[0], NULL, &request[0]), VOLLEY_OK, "");
	expect("its end", volley_wait(&request[0]), VOLLEY_USAGE, "give all the same");
	int none = rank == size - 1;
	expect("start without a path", volley_protect_start(MPI_COMM_WORLD, none ? "" : "/nowhere", 1, NULL, &request[0]), VOLLEY_OK, "");
	expect("its end", volley_wait(&request[0]), VOLLEY_USAGE, "path: none");
	for (int i = 0; i < open; i++) free(parity[i]), drop(b[i]);
}

/* peak is the most memory that this process has had, in KiB. */
static long peak(void) {
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_maxrss;
}

/* takes measures by how much the peak rises while data is protected, for which the library has two windows, and recovered,
 * for which it has twice options.memory at most. */
static void takes(void) {
	size_t bytes = 96 << 20, room;
	volley_buffer b = {malloc(bytes), bytes}, little = {b.data, 1 << 20};
	for (size_t i = 0; i < bytes; i++) ((unsigned char *)b.data)[i] = i * (rank + 1) / 5;
	expect("bytes", volley_parity_bytes(MPI_COMM_WORLD, &b, 1, 1, NULL, &room), VOLLEY_OK, "");
	if (room > bytes / (size - 1) / 100 * 101 + (64 << 10)) expect("how long parity is", -1, 0, "");
	unsigned char *parity = malloc(room);
	memset(parity, 1, room);
	expect("the library and MPI", volley_protect_buffers(MPI_COMM_WORLD, &little, 1, 1, parity, room, NULL), VOLLEY_OK, "");
	long before = peak();
	expect("protect", volley_protect_buffers(MPI_COMM_WORLD, &b, 1, 1, parity, room, NULL), VOLLEY_OK, "");
	long protect = peak() - before;
	expect("recover", volley_recover_buffers(MPI_COMM_WORLD, &b, 1, rank == 0, parity, room, NULL), VOLLEY_OK, "");
	long recover = peak() - before;
	if (rank == 0) fprintf(stderr, "protect takes %ld KiB more than data and parity, recover %ld KiB\n", protect, recover);
	if (protect > 64 << 10) expect("memory to protect", protect, 64 << 10, "");
	if (recover > 128 << 10) expect("memory to recover", recover, 128 << 10, "");
}

/* send_signals sends the signal by which Go's runtime preempts. */
static void *send_signals(void *to) {
	for (;; pthread_testcancel()) pthread_kill(*(pthread_t *)to, SIGURG);
	return NULL;
}

int main(int argc, char **argv) {
	int multiple = strcmp(argv[1], "single") != 0;
	begin(&argc, &argv, multiple);
	volley_buffer b[buffers];
	make(b, 150000, 3);
	size_t room = 0;
	volley_request request = 5;
	if (strcmp(argv[1], "memory") == 0) {
		takes();
	} else if (strcmp(argv[1], "finalize") == 0 || strcmp(argv[1], "signals") == 0) {
		static char memory[1 << 16];
		stack_t own = {.ss_sp = memory, .ss_size = sizeof memory}, none = {.ss_flags = SS_DISABLE};
		int signals = strcmp(argv[1], "signals") == 0;
		if (signals) sigaltstack(&own, NULL);
		volley_buffer other[buffers];
		make(other, 9000000, 4);
		expect("bytes", volley_parity_bytes(MPI_COMM_WORLD, other, buffers, 1, NULL, &room), VOLLEY_OK, "");
		expect("start", volley_protect_buffers_start(MPI_COMM_WORLD, other, buffers, 1, malloc(room), room, NULL, &request), VOLLEY_OK, "");
		pthread_t sender, self = pthread_self();
		if (signals) { /* Python's faulthandler takes its stack away before mpi4py ends MPI */
			sigaltstack(&none, NULL);
			pthread_create(&sender, NULL, send_signals, &self);
		}
		MPI_Finalize();
		if (signals) pthread_cancel(sender), pthread_join(sender, NULL);
		int done;
		expect("test after MPI", volley_test(&request, &done), VOLLEY_OK, "");
		if (!done) expect("over after MPI", -1, 0, "");
		if (rank == 0 && !wrong) printf("done\n");
		return wrong;
	} else if (size == 1) {
		expect("one process", volley_parity_bytes(MPI_COMM_WORLD, b, buffers, 1, NULL, &room), VOLLEY_USAGE, "need at least 2 processes");
	} else {
		volley_buffer lengths[buffers];
		for (int i = 0; i < buffers; i++) lengths[i] = (volley_buffer){NULL, b[i].bytes};
		for (int tolerate = 1; tolerate < size; tolerate++) {
			expect("bytes", volley_parity_bytes(MPI_COMM_WORLD, lengths, buffers, tolerate, NULL, &room), VOLLEY_OK, "");
			unsigned char *parity = malloc(room);
			expect("protect", volley_protect_buffers(MPI_COMM_WORLD, b, buffers, tolerate, parity, room, NULL), VOLLEY_OK, "");
			recovers(MPI_COMM_WORLD, b, parity, room, tolerate, tolerate, 0);
			int rc = volley_recover_buffers(MPI_COMM_WORLD, b, buffers, (rank + 1) % size <= tolerate, parity, room, NULL);
			expect("too much lost", rc, tolerate + 1 < size ? VOLLEY_USAGE : VOLLEY_NONE, tolerate + 1 < size ? "nodes are lost" : "");
			rc = volley_protect_buffers(MPI_COMM_WORLD, b, buffers, tolerate, parity, rank == 0 ? 100 : room, NULL);
			expect("no room", rc, VOLLEY_USAGE, rank == 0 ? "room for 100 bytes of parity: want" : "rank 0 stopped: room for 100");
			rc = volley_protect_buffers(MPI_COMM_WORLD, rank == 0 ? NULL : b, buffers, tolerate, parity, room, NULL);
			expect("no buffers", rc, VOLLEY_USAGE, "buffers: NULL");
			free(parity);
		}
		unsigned char *parity = malloc(room);
		expect("no length", volley_protect_buffers(MPI_COMM_WORLD, lengths, buffers, 1, parity, room, NULL), VOLLEY_USAGE, "buffers[0]: NULL");
		expect("tolerating all", volley_parity_bytes(MPI_COMM_WORLD, b, buffers, size, NULL, &room), VOLLEY_USAGE, "want 1 to");
		volley_buffer longest = {NULL, (size_t)-1};
		expect("a length below 0", volley_parity_bytes(MPI_COMM_WORLD, &longest, 1, 1, NULL, &room), VOLLEY_USAGE, "no memory is as long");
		expect("bytes to nowhere at one", volley_parity_bytes(MPI_COMM_WORLD, b, buffers, 1, NULL, rank == 0 ? NULL : &room), VOLLEY_USAGE, "parity_bytes: NULL");
		expect("start to nowhere", volley_protect_buffers_start(MPI_COMM_WORLD, b, buffers, 1, parity, room, NULL, NULL), VOLLEY_USAGE, "request: NULL");
		expect("wait for NULL", volley_wait(NULL), VOLLEY_USAGE, "request: NULL");
		overlaps(parity, room, multiple);
		free(parity);
		if (multiple) requests();
		else {
			expect("start with one thread", volley_protect_buffers_start(MPI_COMM_WORLD, b, buffers, 1, NULL, 0, NULL, &request), VOLLEY_USAGE, "MPI_THREAD_MULTIPLE");
			if (request != VOLLEY_REQUEST_NULL) expect("no request", -1, 0, "");
		}
	}
	MPI_Finalize();
	if (rank == 0 && !wrong) printf("done\n");
	return wrong;
}
