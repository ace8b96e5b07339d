/* Solves Poisson's equation on a grid of N x N points by conjugate gradients, and keeps checkpoints in memory. Each
 * process has a block of rows, and the directory ROOT/node.RANK, which stands for the memory of its node. Checkpoints
 * are protected while the next iterations run. After a loss of up to TOLERATE nodes the same command goes on.
 *
 *   mpicc -O2 -o solver solver.c $(pkg-config --cflags --libs volley) -lm
 *   mpirun -n 4 ./solver /dev/shm/solver result 1024 300 25
 *
 * Rank 0 prints the residual of each iteration in hexadecimal, so that runs can be compared to the bit. Each process
 * writes its rows to OUT.RANK. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <volley.h>

enum { TOLERATE = 2 }; /* nodes that may be lost at a time */

static int rank, size;
static char node[3000]; /* the directory of this process */

static void fail(const char *what, const char *why) {
	fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

/* The state of conjugate gradients after an iteration. */
static struct {
	int n, rows, iteration;
	double rho;        /* |r|^2 */
	double *x, *r, *p; /* solution, residual, direction: rows * n each, and p has a row more at both sides */
} s;

/* sum adds in the order of the ranks. MPI_Allreduce might add in another order after a restart. */
static double sum(double mine) {
	double total = 0, *all = malloc(size * sizeof *all);
	MPI_Allgather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++) total += all[i];
	free(all);
	return total;
}

static double dot(const double *a, const double *b) {
	double mine = 0;
	for (long i = 0; i < (long)s.rows * s.n; i++) mine += a[i] * b[i];
	return sum(mine);
}

/* start is x = 0, with a right hand side of two charges. */
static void start(void) {
	long points = (long)s.rows * s.n;
	memset(s.x, 0, points * sizeof *s.x);
	for (long i = 0; i < points; i++) {
		long at = (long)rank * points + i, row = at / s.n, column = at % s.n;
		s.p[s.n + i] = s.r[i] = (row == s.n / 3 && column == s.n / 3) - (row == 2 * s.n / 3 && column == s.n / 2);
	}
	s.iteration = 0;
	s.rho = dot(s.r, s.r);
}

/* iterate is one step of conjugate gradients; ap has room for the Laplacian of p. */
static void iterate(double *ap) {
	int n = s.n, up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
	double *p = s.p + n, *above = s.p, *below = p + (long)s.rows * n;
	MPI_Sendrecv(p, n, MPI_DOUBLE, up, 0, below, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(below - n, n, MPI_DOUBLE, down, 1, above, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int row = 0; row < s.rows; row++)
		for (int c = 0; c < n; c++) {
			double *q = p + (long)row * n + c;
			ap[(long)row * n + c] = 4 * q[0] - q[-n] - q[n] - (c > 0 ? q[-1] : 0) - (c < n - 1 ? q[1] : 0);
		}
	double alpha = s.rho / dot(p, ap);
	for (long i = 0; i < (long)s.rows * n; i++) {
		s.x[i] += alpha * p[i];
		s.r[i] -= alpha * ap[i];
	}
	double rho = dot(s.r, s.r), beta = rho / s.rho;
	for (long i = 0; i < (long)s.rows * n; i++) p[i] = s.r[i] + beta * p[i];
	s.rho = rho;
	s.iteration++;
}

/* step_path is the directory of a checkpoint, and state_path its only file. */
static const char *step_path(int step) {
	static char path[3100];
	snprintf(path, sizeof path, "%s/step-%d", node, step);
	return path;
}

static const char *state_path(int step) {
	static char path[3200];
	snprintf(path, sizeof path, "%s/state", step_path(step));
	return path;
}

/* transfer writes the state to a file, or reads it. */
static void transfer(const char *path, const char *mode) {
	FILE *f = fopen(path, mode);
	size_t points = (size_t)s.rows * s.n;
	if (f == NULL) fail(path, strerror(errno));
	struct { void *data; size_t bytes; } parts[] = {{&s.iteration, sizeof s.iteration}, {&s.rho, sizeof s.rho},
		{s.x, points * sizeof(double)}, {s.r, points * sizeof(double)}, {s.p + s.n, points * sizeof(double)}};
	for (int i = 0; i < 5; i++) {
		size_t n = *mode == 'w' ? fwrite(parts[i].data, 1, parts[i].bytes, f) : fread(parts[i].data, 1, parts[i].bytes, f);
		if (n != parts[i].bytes) fail(path, *mode == 'w' ? strerror(errno) : "is of another grid");
	}
	if (fclose(f) != 0) fail(path, strerror(errno));
}

/* newest is the newest checkpoint here below a limit, or 0. */
static int newest(int limit) {
	int found = 0, step;
	DIR *d = opendir(node);
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
		if (sscanf(e->d_name, "step-%d", &step) == 1 && step < limit && step > found) found = step;
	if (d != NULL) closedir(d);
	return found;
}

/* discard removes checkpoints from first to last. */
static void discard(int first, int last) {
	for (int step = last + 1; (step = newest(step)) >= first && step > 0;) {
		char command[3200];
		snprintf(command, sizeof command, "rm -r '%s'", step_path(step));
		if (system(command) != 0) fail(step_path(step), "cannot be removed");
	}
}

/* resume brings back the newest checkpoint that all nodes have or can get back. It returns 0 where there is none. */
static int resume(void) {
	for (int limit = s.iteration + 1, step;; limit = step) {
		int mine = newest(limit), code, worst;
		MPI_Allreduce(&mine, &step, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		if (step == 0) return 0;
		code = volley_recover(MPI_COMM_WORLD, step_path(step), NULL);
		MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		if (worst == VOLLEY_OK) {
			transfer(state_path(step), "rb");
			return step;
		}
		if (code == VOLLEY_FAILED) fail("volley_recover", volley_error()); /* a later try may do */
		if (rank == 0) printf("step %d does not come back: %s\n", step, volley_error());
	}
}

/* in_force waits for the protection of a checkpoint, and removes those before it. */
static void in_force(volley_request *request, int step) {
	if (*request == VOLLEY_REQUEST_NULL) return;
	if (volley_wait(request) != VOLLEY_OK) fail("volley_protect_start", volley_error());
	MPI_Barrier(MPI_COMM_WORLD);
	discard(1, step - 1);
}

int main(int argc, char **argv) {
	int threads, iterations, every;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 6) fail("usage", "solver ROOT OUT N ITERATIONS EVERY");
	s.n = atoi(argv[3]), iterations = atoi(argv[4]), every = atoi(argv[5]);
	if (s.n < 1 || s.n % size != 0 || iterations < 1 || every < 1) fail("usage", "N is a multiple of the processes, and ITERATIONS and EVERY are 1 or more");
	if (size <= TOLERATE) fail("usage", "more processes than nodes that may be lost");
	snprintf(node, sizeof node, "%s/node.%d", argv[1], rank);
	if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) fail(argv[1], strerror(errno));
	if (mkdir(node, 0777) != 0 && errno != EEXIST) fail(node, strerror(errno));
	s.rows = s.n / size;
	size_t points = (size_t)s.rows * s.n;
	double *ap = calloc(points, sizeof *ap);
	s.x = calloc(points, sizeof *s.x), s.r = calloc(points, sizeof *s.r), s.p = calloc(points + 2 * s.n, sizeof *s.p);
	if (ap == NULL || s.x == NULL || s.r == NULL || s.p == NULL) fail("the grid", "no memory");

	int last, pid = getpid(), *pids = malloc(size * sizeof *pids); /* of the last checkpoint */
	s.iteration = iterations;
	last = resume();
	if (last == 0) start();
	discard(last + 1, iterations); /* they are written again */
	MPI_Gather(&pid, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("begins after iteration %d, processes", s.iteration);
		for (int i = 0; i < size; i++) printf(" %d", pids[i]);
		printf("\n");
		fflush(stdout);
	}
	volley_request request = VOLLEY_REQUEST_NULL;
	while (s.iteration < iterations) {
		iterate(ap);
		if (rank == 0) {
			printf("%d %a\n", s.iteration, sqrt(s.rho));
			fflush(stdout);
		}
		if (s.iteration % every != 0) continue;
		in_force(&request, last); /* the one before */
		last = s.iteration;
		if (mkdir(step_path(last), 0777) != 0) fail(step_path(last), strerror(errno));
		transfer(state_path(last), "wb");
		if (volley_protect_start(MPI_COMM_WORLD, step_path(last), TOLERATE, NULL, &request) != VOLLEY_OK) fail("volley_protect_start", volley_error());
	}
	in_force(&request, last);

	char path[4096];
	snprintf(path, sizeof path, "%s.%d", argv[2], rank);
	FILE *out = fopen(path, "wb");
	if (out == NULL || fwrite(s.x, sizeof *s.x, points, out) != points || fclose(out) != 0) fail(path, strerror(errno));
	MPI_Finalize();
	return 0;
}
