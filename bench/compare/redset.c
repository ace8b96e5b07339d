/* redset protect|recover xor|rs R DIRECTORY: what redset does with the directory of each rank, whose number stands
 * for {rank} in DIRECTORY. Rank 0 prints the seconds it took. */
#define REDSET_ENABLE_MPI 1
#include <mpi.h>
#include <redset.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
	int rank, size, worst, n = 0;
	static const char *files[4096];
	char dir[1024], name[1100], group[64];
	redset set;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	char *mark = argc == 5 ? strstr(argv[4], "{rank}") : NULL;
	if (mark == NULL || redset_init() != REDSET_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	int protects = !strcmp(argv[1], "protect"), r = atoi(argv[3]), failed = 0;
	snprintf(dir, sizeof dir, "%.*s%d%s", (int)(mark - argv[4]), argv[4], rank, mark + 6);
	snprintf(name, sizeof name, "%s/.redset.", dir);
	snprintf(group, sizeof group, "node%d", rank);
	mkdir(dir, 0755);
	if (protects) {
		struct dirent **list;
		int count = scandir(dir, &list, NULL, alphasort);
		for (int i = 0; i < count && n < 4096; i++)
			if (list[i]->d_name[0] != '.') {
				char path[2048];
				snprintf(path, sizeof path, "%s/%s", dir, list[i]->d_name);
				files[n++] = strdup(path);
			}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	double began = MPI_Wtime();
	if (!protects)
		failed = redset_recover(MPI_COMM_WORLD, name, &set) != REDSET_SUCCESS;
	else if (!strcmp(argv[2], "xor"))
		failed = redset_create_xor(MPI_COMM_WORLD, group, size, &set) != REDSET_SUCCESS;
	else
		failed = redset_create_rs(MPI_COMM_WORLD, group, size, r, &set) != REDSET_SUCCESS;
	if (protects && !failed)
		failed = redset_apply(n, files, name, set) != REDSET_SUCCESS;
	MPI_Allreduce(&failed, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (rank == 0)
		printf("seconds %.4f\n", MPI_Wtime() - began);
	redset_delete(&set);
	redset_finalize();
	MPI_Finalize();
	return worst;
}
