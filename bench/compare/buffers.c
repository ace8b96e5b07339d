/* What protecting arrays in memory takes, beside two other ways, which alternate in one run:
 *
 *   copy      MPI_Sendrecv of all data to the next process, which keeps it
 *   files     the data is written to a file in DIR/RANK, and volley_protect protects that directory
 *   buffers   volley_protect_buffers
 *
 *   go build -tags mpi -buildmode=c-shared -o libvolley.so ./cmd/libvolley
 *   mpicc -O2 -I cmd/libvolley -o buffers bench/compare/buffers.c -L . -lvolley -Wl,-rpath,$PWD
 *   mpirun -n 4 ./buffers /dev/shm/buffers 64 1 9     # MiB a process, processes that may be lost, turns
 *
 * Prints the median of each way in seconds, the least and the most, and bytes that each process stores. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <volley.h>

static int rank, size;

static void check(int ok, const char *what) {
	if (ok) return;
	fprintf(stderr, "rank %d: %s: %s\n", rank, what, volley_error());
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static int compare(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

int main(int argc, char **argv) {
	enum { ways = 3, most = 1000 };
	static const char *names[ways] = {"copy", "files", "buffers"};
	static double seconds[ways][most];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	check(argc == 5 && atoi(argv[2]) > 0 && atoi(argv[2]) < 1024 && atoi(argv[4]) > 0 && atoi(argv[4]) <= most, "arguments: DIR MIB TOLERATE TURNS");
	size_t bytes = (size_t)atoi(argv[2]) << 20, parity_bytes;
	int tolerate = atoi(argv[3]), turns = atoi(argv[4]);
	unsigned char *data = malloc(bytes), *copy = malloc(bytes);
	memset(copy, 1, bytes);
	volley_buffer list = {data, bytes};
	volley_group_options options = {.digest = "xxh3"};
	check(volley_parity_bytes(MPI_COMM_WORLD, &list, 1, tolerate, &options, &parity_bytes) == VOLLEY_OK, "volley_parity_bytes");
	void *parity = malloc(parity_bytes);
	memset(parity, 1, parity_bytes);
	char dir[4000], path[4096];
	snprintf(dir, sizeof dir, "%s/%d", argv[1], rank);
	snprintf(path, sizeof path, "%s/data", dir);
	mkdir(argv[1], 0700);
	check(mkdir(dir, 0700) == 0, "a directory, which is there already, or cannot be made");
	for (int turn = -1; turn < turns; turn++) { /* the first one is not counted */
		unsigned long long x = 88172645463325252ull + 1000003 * rank + turn;
		for (size_t i = 0; i < bytes; i += sizeof x) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			memcpy(data + i, &x, sizeof x);
		}
		for (int way = 0; way < ways; way++) {
			MPI_Barrier(MPI_COMM_WORLD);
			double from = MPI_Wtime(), passed;
			if (way == 0) {
				MPI_Sendrecv(data, bytes, MPI_BYTE, (rank + 1) % size, 0, copy, bytes, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			} else if (way == 1) {
				int f = open(path, O_WRONLY | O_CREAT, 0600);
				for (size_t done = 0; done < bytes;) {
					ssize_t n = write(f, data + done, bytes - done);
					check(n > 0, "write");
					done += n;
				}
				close(f);
				check(volley_protect(MPI_COMM_WORLD, dir, tolerate, &options) == VOLLEY_OK, "volley_protect");
			} else {
				check(volley_protect_buffers(MPI_COMM_WORLD, &list, 1, tolerate, parity, parity_bytes, &options) == VOLLEY_OK, "volley_protect_buffers");
			}
			passed = MPI_Wtime() - from;
			MPI_Allreduce(MPI_IN_PLACE, &passed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
			if (turn >= 0) seconds[way][turn] = passed;
		}
	}
	for (int way = 0; rank == 0 && way < ways; way++) {
		qsort(seconds[way], turns, sizeof(double), compare);
		printf("%-8s %7.3f s (%.3f to %.3f), stores %.0f MiB\n", names[way], seconds[way][turns / 2], seconds[way][0], seconds[way][turns - 1],
			(way == 0 ? bytes : way == 1 ? bytes + parity_bytes : parity_bytes) / 1048576.0);
	}
	MPI_Finalize();
	return 0;
}
