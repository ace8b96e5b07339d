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

int volley_protect(MPI_Comm comm, const char *path, int tolerate) {
	return volley_protect_f(MPI_Comm_c2f(comm), path, tolerate);
}

int volley_protect_f(MPI_Fint comm, const char *path, int tolerate) { return volleyProtect(comm, (char *)path, tolerate); }

int volley_recover(MPI_Comm comm, const char *path) { return volley_recover_f(MPI_Comm_c2f(comm), path); }

int volley_recover_f(MPI_Fint comm, const char *path) { return volleyRecover(comm, (char *)path); }

const char *volley_error(void) { return volleyError(); }

const char *volley_version(void) { return volleyVersion(); }
