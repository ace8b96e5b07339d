//go:build mpi

#include "volley.h"
#include "_cgo_export.h"

int volley_encode(MPI_Comm comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options) {
	return volley_encode_f(MPI_Comm_c2f(comm), packet, bytes, coded, coded_bytes, options);
}

int volley_encode_f(MPI_Fint comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options) {
	volley_options none = {0};
	return volleyEncode(comm, (void *)packet, bytes, coded, coded_bytes, options != NULL ? (volley_options *)options : &none);
}

const char *volley_error(void) { return volleyError(); }

const char *volley_version(void) { return volleyVersion(); }
