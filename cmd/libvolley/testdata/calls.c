/* Calls of all kinds: several in one program, with errors in between, on parts of the
 * processes, by an initialisation that lets one thread call MPI, or several with "multiple". */
#include "check.h"

/* decodes encodes bytes of x, the most of all at rank 0, and loses packets and coded packets. */
static void decodes(const unsigned char *x, size_t bytes, unsigned char *coded, size_t longest) {
	MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
	volley_options o = {.timeout = 20};
	unsigned char *back = malloc(longest);
	expect("encode to decode", volley_encode(MPI_COMM_WORLD, x, bytes, coded, longest, &o), VOLLEY_OK, "");
	expect("nothing lost", volley_decode(MPI_COMM_WORLD, (void *)x, bytes, 0, NULL, 0, &o), VOLLEY_OK, "");
	int first = size / 2, lost = rank >= first, coded_lost = rank < first; /* as many as are needed are left */
	memset(back, 1, longest);
	if (!lost) memcpy(back, x, bytes);
	expect("decode", volley_decode(MPI_COMM_WORLD, back, bytes, lost, coded_lost ? NULL : coded, longest, &o), VOLLEY_OK, "");
	if (memcmp(back, x, bytes) != 0) expect("the packet comes back", -1, 0, "");
	if (size > 1) {
		lost = coded_lost = rank == first; /* a process has lost all */
		memset(back, 1, longest);
		expect("too few to decode", volley_decode(MPI_COMM_WORLD, lost ? back : (void *)x, lost ? longest : bytes, lost, NULL, 0, &o), VOLLEY_USAGE, "1 packet of");
		for (size_t i = 0; lost && i < longest; i++)
			if (back[i] != 1) {
				expect("a packet that cannot be decoded is as it was", -1, 0, "");
				break;
			}
		expect("decode by the Fortran handle", volley_decode_f(world, lost ? back : (void *)x, lost ? longest : bytes, lost, coded_lost ? NULL : coded, longest, &o), VOLLEY_OK, "");
		if (lost && memcmp(back, x, bytes) != 0) expect("the packet that is lost comes back", -1, 0, "");
	}
	if (size > 1) {
		o.matrix = rank == 1 ? "random:1" : "random:2";
		expect("decode, disagreement", volley_decode(MPI_COMM_WORLD, back, longest, 1, coded, longest, &o), VOLLEY_USAGE, "in matrix");
	}
	free(back);
}

int main(int argc, char **argv) {
	begin(&argc, &argv, argc > 1 && strcmp(argv[1], "multiple") == 0);
	if (strcmp(volley_error(), "") != 0) expect("before any call", -1, 0, "");

	enum { bytes = 100000 };
	unsigned char *x = malloc(bytes), *y = malloc(bytes), *z = malloc(bytes);
	for (int i = 0; i < bytes; i++) x[i] = 31 * i + 7 * rank + i / 256;
	volley_options o = {.timeout = 20};
	expect("defaults", volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, NULL), VOLLEY_OK, "");
	for (int turn = 0; turn < 20; turn++) {
		memset(z, 0, bytes);
		expect("again", volley_encode(MPI_COMM_WORLD, x, bytes, z, bytes, &o), VOLLEY_OK, "");
		if (memcmp(y, z, bytes) != 0) expect("the same again", -1, 0, "");
	}
	o.matrix = "no such";
	expect("a wrong matrix", volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, &o), VOLLEY_USAGE, "no such");
	volley_options bad = {.network = "fast"};
	expect("a wrong network", volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, &bad), VOLLEY_USAGE, "want a rate");
	bad = (volley_options){.network = "wan", .ports = 2};
	expect("two models", volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, &bad), VOLLEY_USAGE, "leave one of them 0");
	bad = (volley_options){.memory = (size_t)-1};
	expect("a memory below 0", volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, &bad), VOLLEY_USAGE, "memory: 18446744073709551615 bytes: no memory is as long");
	if (size > 1) {
		int one = rank == 1;
		expect("two functions", one ? volley_decode(MPI_COMM_WORLD, x, bytes, 0, y, bytes, NULL) : volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, NULL),
			VOLLEY_USAGE, size > 2 ? "rank 1 runs decode, rank 0 runs encode: run the same at all ranks" : "run the same at all ranks");
	}
	o.matrix = NULL;
	o.field = "2^16";
	expect("another field", volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, &o), VOLLEY_OK, "");
	expect("half a symbol", volley_encode(MPI_COMM_WORLD, x, bytes - 1, y, bytes, &o), VOLLEY_USAGE, "symbols of 2^16 have 2");
	o.field = NULL;
	int rc = volley_encode(MPI_COMM_WORLD, x, bytes, y, rank == size - 1 ? bytes - 1 : bytes, &o);
	if (rank == size - 1) expect("no room", rc, VOLLEY_USAGE, "coded_bytes: 99999");
	else if (rc == VOLLEY_OK) expect("no room elsewhere", rc, VOLLEY_FAILED, "");
	if (size > 1) {
		o.matrix = rank == 1 ? "random:1" : "random:2";
		expect("disagreement", volley_encode(MPI_COMM_WORLD, x, bytes, y, bytes, &o), VOLLEY_USAGE, "in matrix");
		o.matrix = NULL;
	}

	decodes(x, bytes - 1000 * rank, y, bytes);

	expect("no packet", volley_encode(MPI_COMM_WORLD, NULL, bytes, y, bytes, NULL), VOLLEY_USAGE, "packet: NULL");
	expect("no room", volley_encode(MPI_COMM_WORLD, x, bytes, NULL, bytes, NULL), VOLLEY_USAGE, "coded: NULL");
	expect("no room to decode", volley_decode(MPI_COMM_WORLD, NULL, bytes, 1, y, bytes, NULL), VOLLEY_USAGE, "packet: NULL");
	if (size == 1) expect("a group of one", volley_protect(MPI_COMM_WORLD, ".", 1, NULL), VOLLEY_USAGE, "need at least 2 directories");

	MPI_Comm half;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	expect("half of the processes", volley_encode(half, x, bytes, y, bytes, &o), VOLLEY_OK, "");
	expect("by the Fortran handle", volley_encode_f(MPI_Comm_c2f(half), x, bytes, z, bytes, &o), VOLLEY_OK, "");
	if (memcmp(y, z, bytes) != 0) expect("the same by the handle", -1, 0, "");
	MPI_Comm_free(&half);
	if (rank == 0) printf("done\n");
	MPI_Finalize();
	return wrong;
}
