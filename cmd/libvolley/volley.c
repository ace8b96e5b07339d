//go:build mpi

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "volley.h"
#include "_cgo_export.h"

/* handle returns the Fortran handle, or any number where MPI does not run: it would end the process. */
static MPI_Fint handle(MPI_Comm comm) {
	int begun = 0, over = 0;
	MPI_Initialized(&begun);
	MPI_Finalized(&over);
	return begun && !over ? MPI_Comm_c2f(comm) : -1;
}

int volley_encode(MPI_Comm comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options) {
	return volley_encode_f(handle(comm), packet, bytes, coded, coded_bytes, options);
}

int volley_encode_f(MPI_Fint comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options) {
	volley_options none = {0};
	return volleyEncode(comm, (void *)packet, bytes, coded, coded_bytes, options != NULL ? (volley_options *)options : &none);
}

int volley_encode_new_f(MPI_Fint comm, const void *packet, size_t bytes, void *(*allocate)(size_t bytes), const volley_options *options) {
	volley_options none = {0};
	return volleyEncodeNew(comm, (void *)packet, bytes, allocate, options != NULL ? (volley_options *)options : &none);
}

void *volley_allocate(void *(*allocate)(size_t bytes), size_t bytes) { return allocate(bytes); }

int volley_refuse_f(MPI_Fint comm, const char *why, double timeout) { return volleyRefuse(comm, (char *)why, timeout); }

int volley_decode(MPI_Comm comm, void *packet, size_t bytes, int lost, const void *coded, size_t coded_bytes, const volley_options *options) {
	return volley_decode_f(handle(comm), packet, bytes, lost, coded, coded_bytes, options);
}

int volley_decode_f(MPI_Fint comm, void *packet, size_t bytes, int lost, const void *coded, size_t coded_bytes, const volley_options *options) {
	volley_options none = {0};
	return volleyDecode(comm, packet, bytes, lost, (void *)coded, coded_bytes, options != NULL ? (volley_options *)options : &none);
}

/* group returns options for groups, or the default ones. */
static volley_group_options *group(const volley_group_options *options) {
	static volley_group_options none;
	return options != NULL ? (volley_group_options *)options : &none;
}

int volley_protect(MPI_Comm comm, const char *path, int tolerate, const volley_group_options *options) {
	return volley_protect_f(handle(comm), path, tolerate, options);
}

int volley_protect_f(MPI_Fint comm, const char *path, int tolerate, const volley_group_options *options) {
	return volleyProtect(comm, (char *)path, tolerate, group(options), 0, NULL);
}

int volley_protect_start(MPI_Comm comm, const char *path, int tolerate, const volley_group_options *options, volley_request *request) {
	return volley_protect_start_f(handle(comm), path, tolerate, options, request);
}

int volley_protect_start_f(MPI_Fint comm, const char *path, int tolerate, const volley_group_options *options, volley_request *request) {
	return volleyProtect(comm, (char *)path, tolerate, group(options), 1, request);
}

int volley_recover(MPI_Comm comm, const char *path, const volley_group_options *options) {
	return volley_recover_f(handle(comm), path, options);
}

int volley_recover_f(MPI_Fint comm, const char *path, const volley_group_options *options) {
	return volleyRecover(comm, (char *)path, group(options), 0, NULL);
}

int volley_recover_start(MPI_Comm comm, const char *path, const volley_group_options *options, volley_request *request) {
	return volley_recover_start_f(handle(comm), path, options, request);
}

int volley_recover_start_f(MPI_Fint comm, const char *path, const volley_group_options *options, volley_request *request) {
	return volleyRecover(comm, (char *)path, group(options), 1, request);
}

int volley_step_path(const char *root, long long step, char *path, size_t bytes) { return volleyStepPath((char *)root, step, path, bytes); }

int volley_verify(MPI_Comm comm, const char *path, const volley_group_options *options, volley_report *report) {
	return volley_verify_f(handle(comm), path, options, report);
}

int volley_verify_f(MPI_Fint comm, const char *path, const volley_group_options *options, volley_report *report) {
	return volleyExamine(comm, (char *)path, 1, group(options), report);
}

int volley_status(MPI_Comm comm, const char *path, const volley_group_options *options, volley_report *report) {
	return volley_status_f(handle(comm), path, options, report);
}

int volley_status_f(MPI_Fint comm, const char *path, const volley_group_options *options, volley_report *report) {
	return volleyExamine(comm, (char *)path, 0, group(options), report);
}

int volley_unprotect(MPI_Comm comm, const char *path, const volley_group_options *options) {
	return volley_unprotect_f(handle(comm), path, options);
}

int volley_unprotect_f(MPI_Fint comm, const char *path, const volley_group_options *options) {
	return volleyUnprotect(comm, (char *)path, group(options));
}

int volley_parity_bytes(MPI_Comm comm, const volley_buffer *buffers, int count, int tolerate,
	const volley_group_options *options, size_t *parity_bytes) {
	return volley_parity_bytes_f(handle(comm), buffers, count, tolerate, options, parity_bytes);
}

int volley_parity_bytes_f(MPI_Fint comm, const volley_buffer *buffers, int count, int tolerate,
	const volley_group_options *options, size_t *parity_bytes) {
	return volleyParityBytes(comm, (volley_buffer *)buffers, count, tolerate, group(options), parity_bytes);
}

int volley_protect_buffers(MPI_Comm comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options) {
	return volley_protect_buffers_f(handle(comm), buffers, count, tolerate, parity, parity_bytes, options);
}

int volley_protect_buffers_f(MPI_Fint comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options) {
	return volleyProtectBuffers(comm, (volley_buffer *)buffers, count, tolerate, parity, parity_bytes, group(options), 0, NULL);
}

int volley_protect_buffers_start(MPI_Comm comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request) {
	return volley_protect_buffers_start_f(handle(comm), buffers, count, tolerate, parity, parity_bytes, options, request);
}

int volley_protect_buffers_start_f(MPI_Fint comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request) {
	return volleyProtectBuffers(comm, (volley_buffer *)buffers, count, tolerate, parity, parity_bytes, group(options), 1, request);
}

int volley_buffer_sizes(MPI_Comm comm, const void *parity, size_t *parity_bytes, size_t *bytes, int *count,
	const volley_group_options *options) {
	return volley_buffer_sizes_f(handle(comm), parity, parity_bytes, bytes, count, options);
}

int volley_buffer_sizes_f(MPI_Fint comm, const void *parity, size_t *parity_bytes, size_t *bytes, int *count,
	const volley_group_options *options) {
	return volleyBufferSizes(comm, (void *)parity, parity_bytes, bytes, count, group(options));
}

int volley_recover_buffers(MPI_Comm comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options) {
	return volley_recover_buffers_f(handle(comm), buffers, count, lost, parity, parity_bytes, options);
}

int volley_recover_buffers_f(MPI_Fint comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options) {
	return volleyRecoverBuffers(comm, (volley_buffer *)buffers, count, lost, parity, parity_bytes, group(options), 0, NULL);
}

int volley_recover_buffers_start(MPI_Comm comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request) {
	return volley_recover_buffers_start_f(handle(comm), buffers, count, lost, parity, parity_bytes, options, request);
}

int volley_recover_buffers_start_f(MPI_Fint comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request) {
	return volleyRecoverBuffers(comm, (volley_buffer *)buffers, count, lost, parity, parity_bytes, group(options), 1, request);
}

int volley_alloc(MPI_Comm comm, size_t bytes, void **data) { return volley_alloc_f(handle(comm), bytes, data); }

int volley_alloc_f(MPI_Fint comm, size_t bytes, void **data) { return volleyAlloc(comm, bytes, data); }

int volley_free(void *data) { return volleyFree(data); }

int volley_encode_init(MPI_Comm comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes,
	const volley_options *options, volley_request *request) {
	return volley_encode_init_f(handle(comm), packet, bytes, coded, coded_bytes, options, request);
}

int volley_encode_init_f(MPI_Fint comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes,
	const volley_options *options, volley_request *request) {
	volley_options none = {0};
	return volleyEncodeInit(comm, (void *)packet, bytes, coded, coded_bytes, options != NULL ? (volley_options *)options : &none, request);
}

int volley_run(volley_request *request) { return volleyRun(request); }

int volley_request_free(volley_request *request) { return volleyRequestFree(request); }

int volley_test(volley_request *request, int *done) { return volleyTest(request, 0, done); }

int volley_wait(volley_request *request) {
	int done = 1;
	return volleyTest(request, 1, &done);
}

int volley_progress(const volley_request *request, unsigned long long *done, unsigned long long *total) {
	return volleyProgress((volley_request *)request, done, total);
}

int volley_cancel(const volley_request *request) { return volleyCancel((volley_request *)request); }

/* The error of each thread's last call. _Thread_local memory would be of the few static bytes that a program has for
 * libraries it loads later: Go's linker asks for that model. */
static pthread_key_t last;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_last(void) { pthread_key_create(&last, free); }

void volley_note(const char *error) {
	pthread_once(&once, make_last);
	free(pthread_getspecific(last));
	pthread_setspecific(last, *error != 0 ? strdup(error) : NULL);
}

const char *volley_error(void) {
	pthread_once(&once, make_last);
	const char *error = pthread_getspecific(last);
	return error != NULL ? error : "";
}

const char *volley_version(void) { return volleyVersion(); }
