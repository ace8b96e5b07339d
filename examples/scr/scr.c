/* The flow of SCR, the Scalable Checkpoint/Restart library, on top of libvolley: an application asks whether to write a
 * checkpoint, has its files routed to the node's own disk, and says when they are complete. At a start it asks for a
 * checkpoint to go on from.
 *
 *   mpicc -o scr scr.c $(pkg-config --cflags --libs volley)
 *   mpirun -n 4 ./scr ROOT 35      stops after step 35; checkpoints of every 10 steps lie in ROOT/node.0 ... node.3
 *   rm -r ROOT/node.2
 *   mpirun -n 4 ./scr ROOT 100     goes on from step 30
 *
 * What differs from SCR:
 * - Checkpoints have the numbers of their steps, and no names of the application's. Snapshots are directories step-N.
 * - There is one level, parity at the nodes. SCR's flush to a parallel file system is a copy of a directory step-N.
 * - Lost files come back at the start, in the directory of the same rank. SCR also moves files to where their process
 *   runs now: here mpirun starts each rank on its node, as a rank file says.
 * - All that lies in the directory of the step is protected, routed or not.
 * - A checkpoint that a process finds not valid is left out by all, as with SCR. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <volley.h>

enum { path_bytes = 4096 };

static struct {
	MPI_Comm comm;
	char root[path_bytes], dir[path_bytes]; /* of this process's node, and of the step that is read or written */
	int every, tolerate, rank;
	long long step;    /* that is read or written */
	long long restart; /* to go on from; -1: none */
} scr;

/* all returns whether something is true at all processes. */
static int all(int valid) {
	int every;
	valid = valid != 0;
	MPI_Allreduce(&valid, &every, 1, MPI_INT, MPI_MIN, scr.comm);
	return every;
}

/* newest brings back the newest checkpoint that all processes can have. */
static void newest(void) {
	scr.restart = VOLLEY_LATEST;
	volley_group_options options = {.step = &scr.restart};
	if (volley_recover(scr.comm, scr.root, &options) == VOLLEY_OK) return;
	if (scr.rank == 0) fprintf(stderr, "no checkpoint to go on from: %s\n", volley_error());
	scr.restart = -1;
}

static void scr_init(MPI_Comm comm, const char *root, int every, int tolerate) {
	MPI_Comm_dup(comm, &scr.comm);
	MPI_Comm_rank(comm, &scr.rank);
	snprintf(scr.root, sizeof scr.root, "%s/node.%d", root, scr.rank);
	scr.every = every;
	scr.tolerate = tolerate;
	newest();
}

static void scr_finalize(void) { MPI_Comm_free(&scr.comm); }

/* need_checkpoint sets flag where it is time for one: at all processes alike. */
static int need_checkpoint(long long step, int *flag) {
	*flag = step % scr.every == 0;
	return VOLLEY_OK;
}

static int start_checkpoint(long long step) {
	scr.step = step;
	return all(volley_step_path(scr.root, step, scr.dir, sizeof scr.dir) == VOLLEY_OK) ? VOLLEY_OK : VOLLEY_FAILED;
}

/* route_file tells where a file of the checkpoint is to be written, or lies. */
static int route_file(const char *name, char *file, size_t bytes) {
	return snprintf(file, bytes, "%s/%s", scr.dir, name) < (int)bytes ? VOLLEY_OK : VOLLEY_USAGE;
}

/* complete_checkpoint protects the files, where all processes have theirs, and keeps the last two checkpoints. */
static int complete_checkpoint(int valid) {
	if (!all(valid)) return VOLLEY_WRONG; /* what was written does not count, and goes with the next one of that step */
	volley_group_options options = {.step = &scr.step, .retain = 2};
	return volley_protect(scr.comm, scr.root, scr.tolerate, &options);
}

static int have_restart(int *flag, long long *step) {
	*flag = scr.restart >= 0;
	*step = scr.restart;
	return VOLLEY_OK;
}

static int start_restart(void) {
	scr.step = scr.restart;
	int bytes = snprintf(scr.dir, sizeof scr.dir, "%s/step-%lld", scr.root, scr.step);
	return bytes < (int)sizeof scr.dir ? VOLLEY_OK : VOLLEY_USAGE;
}

/* complete_restart takes the checkpoint before where a process could not read its files. */
static int complete_restart(int valid) {
	if (all(valid)) return VOLLEY_OK;
	char aside[path_bytes + 32];
	snprintf(aside, sizeof aside, "%s.aside-invalid", scr.dir);
	if (!all(rename(scr.dir, aside) == 0)) return VOLLEY_FAILED;
	newest();
	return VOLLEY_WRONG; /* have_restart tells of another one */
}

/* ---- An application: every process has numbers, which the next step makes of those before. ---- */

enum { numbers = 10000 };

static int ok(const char *what, int code) {
	if (code == VOLLEY_OK) return 1;
	if (scr.rank == 0) fprintf(stderr, "%s: %s\n", what, volley_error());
	return 0;
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
	scr_init(MPI_COMM_WORLD, argv[1], 10, 1);
	static unsigned x[numbers];
	char name[64], file[path_bytes];
	snprintf(name, sizeof name, "rank_%d.ckpt", scr.rank);
	for (int i = 0; i < numbers; i++) x[i] = 31 * scr.rank + i;
	long long step = 0, from = 0;
	int flag;
	for (have_restart(&flag, &from); flag; have_restart(&flag, &from)) {
		int valid = ok("start_restart", start_restart()) && route_file(name, file, sizeof file) == VOLLEY_OK;
		FILE *in = valid ? fopen(file, "rb") : NULL;
		valid = in != NULL && fread(x, sizeof x, 1, in) == 1;
		if (in != NULL) fclose(in);
		if (complete_restart(valid) != VOLLEY_OK) continue;
		step = from;
		if (scr.rank == 0) printf("restart from step %lld\n", step);
		break;
	}
	for (long long last = atoll(argv[2]); step < last;) {
		for (int i = 0; i < numbers; i++) x[i] = 1664525 * x[i] + 1013904223;
		step++;
		need_checkpoint(step, &flag);
		if (!flag || !ok("start_checkpoint", start_checkpoint(step))) continue;
		int valid = route_file(name, file, sizeof file) == VOLLEY_OK;
		FILE *out = valid ? fopen(file, "wb") : NULL;
		valid = out != NULL && fwrite(x, sizeof x, 1, out) == 1;
		if (out != NULL) valid = fclose(out) == 0 && valid;
		ok("complete_checkpoint", complete_checkpoint(valid));
	}
	unsigned sum = 0, total;
	for (int i = 0; i < numbers; i++) sum = 7 * sum + x[i];
	MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD);
	if (scr.rank == 0) printf("step %lld: %u\n", step, total);
	scr_finalize();
	MPI_Finalize();
	return 0;
}
