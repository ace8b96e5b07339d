/* Each process has a file; afterwards each has another one, from which, with any of the
 * others, lost files come back: what volley encode and decode do, in a program that uses MPI.
 *
 *   mpicc -o checkpoint checkpoint.c $(pkg-config --cflags --libs volley)
 *   mpirun -n 4 ./checkpoint ckpt coded       reads ckpt.0 ... ckpt.3, writes coded.0 ... coded.3
 *   mpirun -n 4 ./checkpoint ckpt coded back  reads what is left of both, writes back.0 ... back.3
 */
#include <stdio.h>
#include <stdlib.h>
#include <volley.h>

static int rank;

static void fail(const char *what, const char *why) {
	fprintf(stderr, "%s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

/* load reads NAME.RANK and sets its length; -1 and NULL where there is none. */
static char *load(const char *name, long *bytes) {
	char path[4096];
	snprintf(path, sizeof path, "%s.%d", name, rank);
	*bytes = -1;
	FILE *in = fopen(path, "rb");
	if (in == NULL) return NULL;
	if (fseek(in, 0, SEEK_END) != 0 || (*bytes = ftell(in)) < 0) fail(path, "cannot be read");
	rewind(in);
	char *data = malloc(*bytes + 1);
	if (data == NULL || fread(data, 1, *bytes, in) != (size_t)*bytes) fail(path, "cannot be read");
	fclose(in);
	return data;
}

static void store(const char *name, const char *data, long bytes) {
	char path[4096];
	snprintf(path, sizeof path, "%s.%d", name, rank);
	FILE *out = fopen(path, "wb");
	if (out == NULL || fwrite(data, 1, bytes, out) != (size_t)bytes || fclose(out) != 0) fail(path, "cannot be written");
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 3 && argc != 4) fail("usage", "checkpoint PACKET CODED [BACK], to each of which a dot and the rank are added");
	volley_options options = {.field = "2^8", .matrix = "cauchy", .timeout = 60};

	long bytes, coded_bytes = -1, longest;
	char *packet = load(argv[1], &bytes);
	char *coded = argc == 4 ? load(argv[2], &coded_bytes) : NULL;
	long most = bytes > coded_bytes ? bytes : coded_bytes;
	MPI_Allreduce(&most, &longest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	if (argc == 3) {
		if (packet == NULL) fail(argv[1], "is not there at a process");
		if ((coded = malloc(longest + 1)) == NULL) fail(argv[2], "no memory");
		if (volley_encode(MPI_COMM_WORLD, packet, bytes, coded, longest, &options) != VOLLEY_OK)
			fail("volley_encode", volley_error());
		store(argv[2], coded, longest);
	} else {
		int lost = packet == NULL;
		if (lost) { /* its length is not known here: zeros follow what it had */
			bytes = longest;
			if ((packet = malloc(bytes + 1)) == NULL) fail(argv[1], "no memory");
		}
		if (volley_decode(MPI_COMM_WORLD, packet, bytes, lost, coded, coded == NULL ? 0 : coded_bytes, &options) != VOLLEY_OK)
			fail("volley_decode", volley_error());
		store(argv[3], packet, bytes);
	}
	free(packet);
	free(coded);
	if (rank == 0) printf("volley %s: %ld bytes in each coded file\n", volley_version(), longest);
	MPI_Finalize();
	return 0;
}
