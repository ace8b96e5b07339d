/* What the programs of these tests share: who they are, and a look at what a call returns and says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <volley.h>

static int rank, size, wrong;

static void expect(const char *what, int got, int want, const char *text) {
	if (got == want && strstr(volley_error(), text) != NULL) return;
	wrong = 1;
	fprintf(stderr, "rank %d of %d: %s: returned %d, want %d; error \"%s\", want \"%s\"\n", rank, size, what, got, want, volley_error(), text);
}

/* begin begins MPI, which several threads may call or one only. */
static void begin(int *argc, char ***argv, int multiple) {
	int provided;
	MPI_Init_thread(argc, argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}
