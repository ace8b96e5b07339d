/* Directories of nodes: snapshots, restarts with another number of processes, verify and status, keys and
 * cancelling, of what each call returns. Sets are in calls.f90.
 * There are 2 processes or more, which all see the directory. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

static char base[2048];

static void is(const char *what, long long got, long long want) {
	if (got == want) return;
	wrong = 1;
	fprintf(stderr, "rank %d of %d: %s: is %lld, want %lld\n", rank, size, what, got, want);
}

static const char *join(const char *a, const char *b) {
	static char paths[8][4096];
	static int last;
	char *path = paths[last = (last + 1) % 8];
	snprintf(path, sizeof paths[0], "%s/%s", a, b);
	return path;
}

/* node returns this process's directory for a test. */
static const char *node(const char *test) {
	char name[64];
	snprintf(name, sizeof name, "%s.%d", test, rank);
	return strdup(join(base, name));
}

static void fill(const char *path, size_t bytes, int seed) {
	FILE *out = fopen(path, "wb");
	if (out == NULL) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 9);
	}
	for (size_t i = 0; i < bytes; i++) fputc((int)(seed + 7 * rank + i * 31 + i / 256), out);
	fclose(out);
}

/* holds reports whether a file is as fill has made it. */
static int holds(const char *path, size_t bytes, int seed) {
	FILE *in = fopen(path, "rb");
	if (in == NULL) return 0;
	size_t i = 0;
	for (int c; (c = fgetc(in)) != EOF; i++)
		if (c != ((seed + 7 * rank + (int)(i * 31 + i / 256)) & 255)) break;
	int all = i == bytes && feof(in);
	fclose(in);
	return all;
}

static int there(const char *path) { return access(path, F_OK) == 0; }

static void lose(const char *path) {
	char line[5000];
	snprintf(line, sizeof line, "rm -rf '%s'", path);
	if (system(line) != 0) exit(9);
}

/* tolerate_of returns how many nodes the tests lose. */
static int tolerate_of(void) { return size > 3 ? 2 : 1; }

static void snapshots(void) {
	const char *root = node("root");
	char path[4096], tiny[4];
	long long step = 3;
	int R = tolerate_of(), last = rank == size - 1;
	volley_group_options o = {.step = &step};
	mkdir(root, 0777);
	expect("a step without a root", volley_step_path("", 1, path, sizeof path), VOLLEY_USAGE, "want a root");
	expect("a step without room", volley_step_path(root, 1, tiny, sizeof tiny), VOLLEY_USAGE, "bytes: 4");
	for (step = 3; step <= 6; step++) {
		expect("step_path", volley_step_path(root, step, path, sizeof path), VOLLEY_OK, "");
		fill(join(path, "state"), 20000 + 100 * rank, (int)step);
		if (step == 6) break; /* never complete */
		o.retain = step == 5 ? 2 : 0;
		expect("protect a snapshot", volley_protect(MPI_COMM_WORLD, root, R, &o), VOLLEY_OK, "");
		MPI_Barrier(MPI_COMM_WORLD);
	}
	is("step-3 is removed", there(join(root, "step-3")), 0);
	is("step-4 stays", there(join(root, "step-4")), 1);
	is("step-5 has its name", there(join(root, "step-5/state")), 1);
	is("step-6 has none", there(join(root, "step-6")), 0);

	o.retain = 0;
	o.retain = last ? -1 : 0;
	expect("retain below 0", volley_protect(MPI_COMM_WORLD, root, R, &o), VOLLEY_USAGE, "retain: -1");
	o.retain = 0;
	MPI_Barrier(MPI_COMM_WORLD);

	volley_report report;
	step = VOLLEY_LATEST;
	expect("status of the newest", volley_status(MPI_COMM_WORLD, root, &o, &report), VOLLEY_OK, "");
	is("the step of status", step, 5);
	is("the step of its report", report.step, 5);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank < R) lose(root);
	MPI_Barrier(MPI_COMM_WORLD);
	step = VOLLEY_LATEST;
	expect("status after losses", volley_status(MPI_COMM_WORLD, root, &o, &report), VOLLEY_WRONG, "lost");
	is("nodes that are lost", report.lost, R);
	is("recoverable", report.recoverable, 1);
	step = VOLLEY_LATEST;
	expect("recover the newest", volley_recover(MPI_COMM_WORLD, root, &o), VOLLEY_OK, "");
	is("the step that came back", step, 5);
	is("its file", holds(join(root, "step-5/state"), 20000 + 100 * rank, 5), 1);
	MPI_Barrier(MPI_COMM_WORLD);

	expect("unprotect a root", volley_unprotect(MPI_COMM_WORLD, root, &o), VOLLEY_USAGE, "step: the protection of one snapshot");
}

/* count returns in how many places below all roots a snapshot lies, as each rank that has written it left it. */
static int count(const char *root, int step, int ranks) {
	int here = 0, all, me = rank;
	char name[64];
	for (int spare = -1; spare < ranks; spare++) {
		for (rank = 0; rank < ranks; rank++) {
			if (spare < 0) snprintf(name, sizeof name, "step-%d/state.%d", step, rank);
			else snprintf(name, sizeof name, ".spare-%d/step-%d/state.%d", spare, step, rank);
			here += holds(join(root, name), 20000 + 100 * rank, step);
		}
	}
	rank = me;
	MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

/* save writes a snapshot as each process of comm does. */
static void save(MPI_Comm comm, const char *root, long long step, int R, int retain) {
	char path[4096], name[64];
	volley_group_options o = {.step = &step, .retain = retain};
	expect("step_path", volley_step_path(root, step, path, sizeof path), VOLLEY_OK, "");
	snprintf(name, sizeof name, "state.%d", rank);
	fill(join(path, name), 20000 + 100 * rank, (int)step);
	expect("protect a snapshot", volley_protect(comm, root, R, &o), VOLLEY_OK, "");
}

/* restarts has a job go on with fewer processes, in another order, and then with more. */
static void restarts(void) {
	const char *root = node("job");
	char path[4096];
	int R = tolerate_of(), fewer = size - 1;
	long long step = VOLLEY_LATEST;
	volley_group_options o = {.step = &step};
	volley_report report;
	MPI_Comm comm;
	expect("nothing yet", volley_recover(MPI_COMM_WORLD, root, &o), VOLLEY_NONE, "no root has a directory step-N");
	mkdir(root, 0777);
	save(MPI_COMM_WORLD, root, 7, R, 0);
	volley_step_path(root, 6, path, sizeof path); /* never complete */
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == fewer || (R > 1 && rank == 1)) lose(root);
	MPI_Comm_split(MPI_COMM_WORLD, rank < fewer ? 0 : MPI_UNDEFINED, -rank, &comm);
	if (comm != MPI_COMM_NULL) {
		expect("recover with fewer", volley_recover(comm, root, &o), VOLLEY_OK, "");
		is("the step of more", step, 7);
		expect("verify with fewer", volley_verify(comm, root, &o, &report), VOLLEY_OK, "");
		is("nodes of more", report.nodes, size);
	}
	is("what came back", count(root, 7, size), size);
	if (comm != MPI_COMM_NULL && fewer > 1) {
		save(comm, root, 8, 1, 1);
		is("the step of more is removed", there(join(root, "step-7")), 0);
		is("and what was never complete", there(join(root, "step-6.draft")), 0);
		if (rank == 0) lose(root);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (fewer > 1) {
		step = VOLLEY_LATEST;
		expect("recover with more", volley_recover(MPI_COMM_WORLD, root, &o), VOLLEY_OK, "");
		is("the step of fewer", step, 8);
		is("what came back of it", count(root, 8, fewer), fewer);
	}
	if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

static void reports(void) {
	const char *path = node("whole");
	int R = tolerate_of(), last = rank == size - 1;
	volley_report r;
	mkdir(path, 0777);
	fill(join(path, "state"), 30000 + rank, 1);
	fill(join(path, "mesh"), 5000, 2);
	MPI_Barrier(MPI_COMM_WORLD);
	expect("status, not protected", volley_status(MPI_COMM_WORLD, path, NULL, &r), VOLLEY_WRONG, "not protected");
	is("it is not", r.is_protected, 0);
	is("nor recoverable", r.recoverable, 0);
	expect("unprotect nothing", volley_unprotect(MPI_COMM_WORLD, path, NULL), VOLLEY_OK, "");
	expect("protect", volley_protect(MPI_COMM_WORLD, path, R, NULL), VOLLEY_OK, "");
	expect("verify without a report", volley_verify(MPI_COMM_WORLD, path, NULL, last ? NULL : &r), VOLLEY_USAGE, "report: NULL");
	expect("unprotect without a path", volley_unprotect(MPI_COMM_WORLD, last ? NULL : path, NULL), VOLLEY_USAGE, "path: none");
	expect("verify", volley_verify(MPI_COMM_WORLD, path, NULL, &r), VOLLEY_OK, "");
	is("whole", r.whole, 1);
	is("nodes", r.nodes, size);
	is("tolerate", r.tolerate, R);
	is("may lose", r.may_lose, R);
	is("step of no root", r.step, VOLLEY_LATEST);
	is("generation", r.generation, 1);
	is("since is set", r.since > 1000000000, 1);
	is("sets", r.sets, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0 || (R > 1 && rank == 2)) fill(join(path, "mesh"), 5000, 3); /* its length is as before */
	MPI_Barrier(MPI_COMM_WORLD);
	expect("verify what has changed", volley_verify(MPI_COMM_WORLD, path, NULL, &r), VOLLEY_OK, "");
	is("not whole", r.whole, 0);
	is("nothing is broken", r.broken + r.lost, 0);
	is("fewer may be lost", r.may_lose < R, 1);
	is("files are at risk", r.files_at_risk > 0, size > 2); /* parity of two nodes is of one each */
	expect("status of it", volley_status_f(MPI_Comm_c2f(MPI_COMM_WORLD), path, NULL, &r), VOLLEY_OK, "");
	MPI_Barrier(MPI_COMM_WORLD);
	expect("protect it", volley_protect(MPI_COMM_WORLD, path, R, NULL), VOLLEY_OK, "");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) lose(path);
	MPI_Barrier(MPI_COMM_WORLD);
	expect("unprotect what is lost", volley_unprotect(MPI_COMM_WORLD, path, NULL), VOLLEY_USAGE, "volley unprotect --force gives it up");
	expect("recover", volley_recover(MPI_COMM_WORLD, path, NULL), VOLLEY_OK, "");
	is("the file", holds(join(path, "mesh"), 5000, rank == 0 || (R > 1 && rank == 2) ? 3 : 2), 1);
	expect("unprotect", volley_unprotect_f(MPI_Comm_c2f(MPI_COMM_WORLD), path, NULL), VOLLEY_OK, "");
	is("no .volley", there(join(path, ".volley")), 0);
}

static void requests(void) {
	const char *path = node("request");
	int R = tolerate_of(), last = rank == size - 1, done;
	size_t bytes = 6 << 20;
	volley_request request = VOLLEY_REQUEST_NULL, copy;
	unsigned long long now = 7, all = 7;
	mkdir(path, 0777);
	fill(join(path, "state"), bytes, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	volley_group_options endless = {.timeout = last ? NAN : 30};
	expect("a timeout that is no number", volley_protect(MPI_COMM_WORLD, path, R, &endless), VOLLEY_USAGE, "timeout: NaN");
	expect("protect", volley_protect(MPI_COMM_WORLD, path, R, NULL), VOLLEY_OK, "");
	expect("progress of none", volley_progress(&request, &now, &all), VOLLEY_OK, "");
	is("is none", now + all, 0);
	expect("cancel none", volley_cancel(&request), VOLLEY_OK, "");
	int completed = 1, code;
	do { /* a run that is over before it is cancelled has protected */
		fill(join(path, "state"), bytes, ++completed);
		MPI_Barrier(MPI_COMM_WORLD);
		expect("start", volley_protect_start(MPI_COMM_WORLD, path, R, NULL, &request), VOLLEY_OK, "");
		copy = request;
		if (last) expect("cancel", volley_cancel(&request), VOLLEY_OK, "");
		for (done = 0, code = VOLLEY_OK; !done && code == VOLLEY_OK;) {
			code = volley_test(&request, &done);
			if (!done) expect("progress", volley_progress(&request, &now, &all), VOLLEY_OK, "");
		}
	} while (code == VOLLEY_OK);
	is("it is cancelled", code, VOLLEY_CANCELLED);
	expect("cancel what is over", volley_cancel(&copy), VOLLEY_USAGE, "no request");
	expect("progress of what is over", volley_progress(&copy, &now, &all), VOLLEY_USAGE, "no request");
	MPI_Barrier(MPI_COMM_WORLD);
	volley_report r;
	expect("the earlier protection", volley_status(MPI_COMM_WORLD, path, NULL, &r), VOLLEY_OK, "");
	is("is in force", r.generation, completed - 1);
	expect("protect after it", volley_protect(MPI_COMM_WORLD, path, R, NULL), VOLLEY_OK, "");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank < R) lose(path);
	MPI_Barrier(MPI_COMM_WORLD);
	expect("start to recover", volley_recover_start(MPI_COMM_WORLD, path, NULL, &request), VOLLEY_OK, "");
	expect("its end", volley_wait(&request), VOLLEY_OK, "");
	is("what came back", holds(join(path, "state"), bytes, completed), 1);

	volley_buffer list = {malloc(bytes), bytes};
	memset(list.data, rank, bytes);
	size_t room;
	expect("room", volley_parity_bytes(MPI_COMM_WORLD, &list, 1, R, NULL, &room), VOLLEY_OK, "");
	void *parity = malloc(room);
	do {
		expect("start buffers", volley_protect_buffers_start(MPI_COMM_WORLD, &list, 1, R, parity, room, NULL, &request), VOLLEY_OK, "");
		if (rank == 0) expect("cancel buffers", volley_cancel(&request), VOLLEY_OK, "");
		code = volley_wait(&request);
	} while (code == VOLLEY_OK);
	is("buffers are cancelled", code, VOLLEY_CANCELLED);
	volley_group_options o = {.set_size = 2};
	expect("sets of buffers", volley_protect_buffers(MPI_COMM_WORLD, &list, 1, R, parity, room, &o), VOLLEY_USAGE, "set_size: it is for directories");
	free(list.data);
	free(parity);
}

/* keys protects with a digest and then with a key, of which the group has one only. */
static void keys(void) {
	const char *path = node("keyed"), *key = node("key"), *other = node("other");
	int R = tolerate_of(), me = rank;
	volley_group_options o = {.digest = "md5"};
	mkdir(path, 0777);
	fill(join(path, "state"), 9000, 1);
	rank = 0; /* all write the same */
	fill(key, 32, 1);
	fill(other, 32, 2);
	rank = me;
	chmod(key, 0600);
	chmod(other, 0600);
	MPI_Barrier(MPI_COMM_WORLD);
	expect("a digest that there is not", volley_protect(MPI_COMM_WORLD, path, R, &o), VOLLEY_USAGE, "digest \"md5\"");
	o.digest = "xxh3";
	expect("protect with a digest", volley_protect(MPI_COMM_WORLD, path, R, &o), VOLLEY_OK, "");
	expect("protect, as in the last call", volley_protect_f(MPI_Comm_c2f(MPI_COMM_WORLD), path, 0, NULL), VOLLEY_OK, "");
	o = (volley_group_options){.key = key, .digest = "sha256"};
	expect("protect with a key", volley_protect(MPI_COMM_WORLD, path, R, &o), VOLLEY_OK, "");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank < R) lose(path);
	MPI_Barrier(MPI_COMM_WORLD);
	expect("recover without a key", volley_recover(MPI_COMM_WORLD, path, NULL), VOLLEY_USAGE, "give the key");
	expect("recover with a key", volley_recover_f(MPI_Comm_c2f(MPI_COMM_WORLD), path, &o), VOLLEY_OK, "");
	is("the file of a keyed group", holds(join(path, "state"), 9000, 1), 1);
	o.key = other;
	expect("another key", volley_recover(MPI_COMM_WORLD, path, &o), VOLLEY_USAGE, "with this key");
}

/* mixes has one process call another function. */
static void mixes(void) {
	const char *path = node("whole");
	volley_report r;
	char parity[1000];
	volley_buffer none = {NULL, 0};
	mkdir(path, 0777);
	for (int i = 0; i < 4; i++) {
		int rc, here = rank == size - 1 ? i : -1;
		if (here == 0) rc = volley_verify(MPI_COMM_WORLD, path, NULL, &r);
		else if (here == 1) rc = volley_unprotect(MPI_COMM_WORLD, path, NULL);
		else if (here == 2) rc = volley_protect_buffers(MPI_COMM_WORLD, &none, 1, 1, parity, sizeof parity, NULL);
		else if (here == 3) rc = volley_encode(MPI_COMM_WORLD, path, 1, parity, 1, NULL);
		else rc = volley_status(MPI_COMM_WORLD, path, NULL, &r);
		expect("another function", rc, VOLLEY_USAGE, "rank 0 runs status: run the same");
	}
}

/* groups DIR [single]: with "single" MPI lets one thread call it, and there are no requests. */
int main(int argc, char **argv) {
	int single = argc > 2;
	begin(&argc, &argv, !single);
	snprintf(base, sizeof base, "%s", argc > 1 ? argv[1] : ".");
	snapshots();
	restarts();
	reports();
	keys();
	mixes();
	if (!single) requests();
	if (rank == 0) printf("done\n");
	MPI_Finalize();
	return wrong;
}
