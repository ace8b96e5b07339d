/* Each process has a file; afterwards each has another one, from which, with any of the
 * others, lost files come back: what volley encode does, in a program that uses MPI.
 *
 *   go build -tags mpi -buildmode=c-shared -o libvolley.so ./cmd/libvolley
 *   mpicc -I cmd/libvolley -o checkpoint examples/mpi-c/checkpoint.c -L . -lvolley -Wl,-rpath,$PWD
 *   mpirun -n 4 ./checkpoint ckpt coded     reads ckpt.0 ... ckpt.3, writes coded.0 ... coded.3
 */
#include <stdio.h>
#include <stdlib.h>
#include <volley.h>

static void fail(const char *what, const char *why) {
	fprintf(stderr, "%s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 3) fail("usage", "checkpoint PACKET CODED, to each of which a dot and the rank are added");

	char name[4096];
	snprintf(name, sizeof name, "%s.%d", argv[1], rank);
	FILE *in = fopen(name, "rb");
	if (in == NULL || fseek(in, 0, SEEK_END) != 0) fail(name, "cannot be read");
	long bytes = ftell(in), longest;
	rewind(in);
	MPI_Allreduce(&bytes, &longest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	char *packet = malloc(bytes + 1), *coded = malloc(longest + 1);
	if (packet == NULL || coded == NULL) fail(name, "no memory");
	if (fread(packet, 1, bytes, in) != (size_t)bytes) fail(name, "cannot be read");
	fclose(in);

	volley_options options = {.field = "2^8", .matrix = "cauchy", .timeout = 60};
	if (volley_encode(MPI_COMM_WORLD, packet, bytes, coded, longest, &options) != VOLLEY_OK)
		fail("volley_encode", volley_error());

	snprintf(name, sizeof name, "%s.%d", argv[2], rank);
	FILE *out = fopen(name, "wb");
	if (out == NULL || fwrite(coded, 1, longest, out) != (size_t)longest || fclose(out) != 0) fail(name, "cannot be written");
	free(packet);
	free(coded);
	if (rank == 0) printf("volley %s: %ld bytes in each coded file\n", volley_version(), longest);
	MPI_Finalize();
	return 0;
}
