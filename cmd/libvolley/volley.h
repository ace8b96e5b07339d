/* Volley for C and Fortran programs that use MPI: libvolley.so.
 *
 *   go build -tags mpi -buildmode=c-shared -o libvolley.so ./cmd/libvolley
 *   mpicc -I cmd/libvolley program.c -L . -lvolley
 */
#ifndef VOLLEY_H
#define VOLLEY_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return: VOLLEY_OK, or what kind of error volley_error tells. */
enum {
	VOLLEY_OK = 0,
	VOLLEY_FAILED = 1, /* the run failed, here or at another process */
	VOLLEY_USAGE = 2,  /* an argument, or the processes disagree */
	VOLLEY_WRONG = 3   /* the result failed its check */
};

/* How to encode. A member that is 0 has its default; all processes give the same. */
typedef struct volley_options {
	const char *field;     /* 2^8, as volley fields lists them */
	const char *matrix;    /* cauchy, as volley encode --help lists them */
	const char *algorithm; /* auto */
	int ports;             /* 1 */
	double timeout;        /* seconds without a message until the run fails: 30; below 0: never */
	size_t memory;         /* bytes of packets that a process holds at a time: 64 MiB */
	int unchecked;         /* leave the check of the result out */
} volley_options;

/* Encodes: with x_i the packet of process i of comm, of bytes bytes and padded with zeros to
 * the longest, coded becomes the sum of A[i][rank] * x_i over a finite field. It has room for
 * coded_bytes, at least the longest packet. Bytes are symbols, little-endian, so bytes is a
 * multiple of a symbol's; every byte is one over 2^8, every two are over 2^16.
 *
 * All processes of comm call it, and none calls MPI in another thread meanwhile. MPI is
 * initialised, by MPI_Init or MPI_Init_thread. options may be NULL. */
int volley_encode(MPI_Comm comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options);

/* The same by the communicator's Fortran handle (comm, or comm%MPI_VAL). */
int volley_encode_f(MPI_Fint comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options);

/* What went wrong in the last call in this process, in one line; "" if nothing did. It is
 * good until the next call. */
const char *volley_error(void);

/* The version of the library. */
const char *volley_version(void);

#ifdef __cplusplus
}
#endif

#endif
