/* What protecting arrays in memory takes, beside other ways, which alternate in one run:
 *
 *   copy      MPI_Sendrecv of all data to the next process, which keeps it
 *   ring      parity by a ring of MPI_Sendrecv, with a multiply-add in AVX2: no digests, and no check of the result
 *   files     the data is written to a file in DIR/RANK, and volley_protect protects that directory
 *   buffers   volley_protect_buffers
 *
 *   go build -tags mpi -buildmode=c-shared -o libvolley.so ./cmd/libvolley
 *   mpicc -O2 -I cmd/libvolley -o buffers bench/compare/buffers.c -L . -lvolley -Wl,-rpath,$PWD
 *   mpirun -n 4 ./buffers /dev/shm/buffers 64 1 9     # MiB a process, processes that may be lost, turns
 *
 * Prints the median of each way in seconds, the least and the most, the median of the core-seconds of all processes, and
 * bytes that each process stores. Run it with --mca mpi_yield_when_idle 1 where there are fewer cores than processes. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <volley.h>

static int rank, size;

static void check(int ok, const char *what) {
	if (ok) return;
	fprintf(stderr, "rank %d: %s: %s\n", rank, what, volley_error());
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* product multiplies in GF(2^8) with the polynomial 0x11d. */
static uint8_t product(uint8_t a, uint8_t b) {
	uint8_t sum = 0;
	for (; b; b >>= 1, a = a << 1 ^ (a >> 7) * 0x1d)
		if (b & 1) sum ^= a;
	return sum;
}

/* muladd sets sum to before + factor * data, n bytes, a multiple of 32. */
__attribute__((target("avx2"))) static void muladd(uint8_t *sum, const uint8_t *before, uint8_t factor, const uint8_t *data, size_t n) {
	uint8_t low[16], high[16];
	for (int i = 0; i < 16; i++) low[i] = product(factor, i), high[i] = product(factor, i << 4);
	__m256i lows = _mm256_broadcastsi128_si256(_mm_loadu_si128((void *)low)), highs = _mm256_broadcastsi128_si256(_mm_loadu_si128((void *)high));
	__m256i mask = _mm256_set1_epi8(15);
	for (size_t i = 0; i < n; i += 32) {
		__m256i x = _mm256_loadu_si256((void *)(data + i));
		if (factor != 1) {
			__m256i upper = _mm256_and_si256(_mm256_srli_epi64(x, 4), mask);
			x = _mm256_xor_si256(_mm256_shuffle_epi8(lows, _mm256_and_si256(x, mask)), _mm256_shuffle_epi8(highs, upper));
		}
		_mm256_storeu_si256((void *)(sum + i), _mm256_xor_si256(x, _mm256_loadu_si256((void *)(before + i))));
	}
}

/* ring makes parity of the data of all processes, of a segment of each for each process: sums of segments go around, one
 * block at a time, and end at the process that keeps them, which has none in the sum. */
static void ring(const uint8_t *data, size_t bytes, int tolerate, uint8_t *parity, uint8_t *sums) {
	enum { block = 512 << 10 };
	static uint8_t zeros[block];
	size_t segment = bytes / (size - tolerate) / 32 * 32;
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	for (int p = 0; p < tolerate; p++) {
		uint8_t factor = 1;
		for (int i = 0; i < p; i++) factor = product(factor, 2);
		for (int t = 0; t < size - tolerate; t++) {
			int from = last, to = next;
			uint8_t *target = sums, power = 1;
			for (int i = 0; i < (rank + t) % (size - tolerate); i++) power = product(power, factor);
			if (t == size - tolerate - 1) { /* of each sum, the p-th process that comes next keeps it */
				to = (rank + 1 + p) % size, from = (rank + size - 1 - p) % size;
				target = parity + p * segment;
			}
			for (size_t start = 0; start < segment; start += block) {
				static uint8_t sum[block];
				size_t n = segment - start < block ? segment - start : block;
				muladd(sum, t == 0 ? zeros : sums + start, power, data + t * segment + start, n);
				MPI_Sendrecv(sum, n, MPI_BYTE, to, p, target + start, n, MPI_BYTE, from, p, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			}
		}
	}
}

static double core_seconds(void) {
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int compare(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

int main(int argc, char **argv) {
	enum { ways = 4, most = 1000 };
	static const char *names[ways] = {"copy", "ring", "files", "buffers"};
	static double seconds[ways][most], cores[ways][most];
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
			double from = MPI_Wtime(), before = core_seconds(), passed, used;
			if (way == 0) {
				MPI_Sendrecv(data, bytes, MPI_BYTE, (rank + 1) % size, 0, copy, bytes, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			} else if (way == 1) {
				ring(data, bytes, tolerate, parity, copy);
			} else if (way == 2) {
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
			used = core_seconds() - before;
			MPI_Allreduce(MPI_IN_PLACE, &passed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
			MPI_Allreduce(MPI_IN_PLACE, &used, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			if (turn >= 0) seconds[way][turn] = passed, cores[way][turn] = used;
		}
	}
	for (int way = 0; rank == 0 && way < ways; way++) {
		qsort(seconds[way], turns, sizeof(double), compare);
		qsort(cores[way], turns, sizeof(double), compare);
		printf("%-8s %7.3f s (%.3f to %.3f), %.3f core-seconds, stores %.0f MiB\n", names[way], seconds[way][turns / 2], seconds[way][0], seconds[way][turns - 1],
			cores[way][turns / 2], (way == 0 ? bytes : way == 2 ? bytes + parity_bytes : parity_bytes) / 1048576.0);
	}
	MPI_Finalize();
	return 0;
}
