//go:build mpi

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "volley.h"
#include "_cgo_export.h"

int volley_encode(MPI_Comm comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options) {
	return volley_encode_f(MPI_Comm_c2f(comm), packet, bytes, coded, coded_bytes, options);
}

int volley_encode_f(MPI_Fint comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options) {
	volley_options none = {0};
	return volleyEncode(comm, (void *)packet, bytes, coded, coded_bytes, options != NULL ? (volley_options *)options : &none);
}

int volley_decode(MPI_Comm comm, void *packet, size_t bytes, int lost, const void *coded, size_t coded_bytes, const volley_options *options) {
	return volley_decode_f(MPI_Comm_c2f(comm), packet, bytes, lost, coded, coded_bytes, options);
}

int volley_decode_f(MPI_Fint comm, void *packet, size_t bytes, int lost, const void *coded, size_t coded_bytes, const volley_options *options) {
	volley_options none = {0};
	return volleyDecode(comm, packet, bytes, lost, (void *)coded, coded_bytes, options != NULL ? (volley_options *)options : &none);
}

static volley_group_options no_group_options;

int volley_protect(MPI_Comm comm, const char *path, int tolerate, const volley_group_options *options) {
	return volley_protect_f(MPI_Comm_c2f(comm), path, tolerate, options);
}

int volley_protect_f(MPI_Fint comm, const char *path, int tolerate, const volley_group_options *options) {
	return volleyProtect(comm, (char *)path, tolerate, options != NULL ? (volley_group_options *)options : &no_group_options);
}

int volley_recover(MPI_Comm comm, const char *path, const volley_group_options *options) {
	return volley_recover_f(MPI_Comm_c2f(comm), path, options);
}

int volley_recover_f(MPI_Fint comm, const char *path, const volley_group_options *options) {
	return volleyRecover(comm, (char *)path, options != NULL ? (volley_group_options *)options : &no_group_options);
}

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
