/* fti CONFIG FILE BYTES: the first run checkpoints the file of each rank, whose number stands for {rank} in FILE, at
 * level 3 and ends as a crash would; FTI then notes that in CONFIG, and the next run recovers and compares. Rank 0
 * prints the seconds of FTI's own work. */
#include <mpi.h>
#include <fti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int rank, bad = 0, worst;
	char path[1024];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	char *mark = argc == 4 ? strstr(argv[2], "{rank}") : NULL;
	if (mark == NULL)
		MPI_Abort(MPI_COMM_WORLD, 2);
	long bytes = atol(argv[3]);
	char *data = calloc(1, bytes), *want = malloc(bytes);
	snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - argv[2]), argv[2], rank, mark + 6);
	FILE *f = fopen(path, "rb");
	if (f == NULL || fread(want, 1, bytes, f) != (size_t)bytes)
		MPI_Abort(MPI_COMM_WORLD, 2);
	fclose(f);
	MPI_Barrier(MPI_COMM_WORLD);
	double began = MPI_Wtime();
	FTI_Init(argv[1], MPI_COMM_WORLD); /* which recovers what other ranks have lost */
	MPI_Barrier(FTI_COMM_WORLD);
	double seconds = MPI_Wtime() - began;
	FTI_Protect(0, data, bytes, FTI_CHAR);
	if (FTI_Status() == 0) {
		memcpy(data, want, bytes);
		MPI_Barrier(FTI_COMM_WORLD);
		began = MPI_Wtime();
		bad = FTI_Checkpoint(1, 3) != FTI_DONE;
		MPI_Barrier(FTI_COMM_WORLD);
		seconds = MPI_Wtime() - began;
	} else {
		bad = FTI_Recover() != FTI_SCES || memcmp(data, want, bytes);
	}
	MPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, FTI_COMM_WORLD);
	if (rank == 0)
		printf("seconds %.4f\n", seconds);
	fflush(stdout);
	MPI_Barrier(FTI_COMM_WORLD);
	MPI_Finalize();
	_exit(worst); /* without FTI_Finalize, after which there is nothing to recover */
}
