/* Volley for C and Fortran programs that use MPI: libvolley.so, which make install installs.
 *
 *   mpicc program.c $(pkg-config --cflags --libs volley)
 *
 * Fortran programs use the module volley, in volley.f90. GOMAXPROCS in the environment of a process bounds the cores that it
 * uses for Volley. */
#ifndef VOLLEY_H
#define VOLLEY_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All processes of comm, a communicator with one group, call a function that takes one. MPI is initialised, by MPI_Init or
 * MPI_Init_thread, and not finalised. No process calls MPI in another thread meanwhile, unless it has
 * MPI_THREAD_MULTIPLE. Where comm is an intercommunicator or MPI_COMM_NULL, or MPI does not run, VOLLEY_USAGE is returned
 * at once.
 *
 * Where not all processes have called within options.timeout, the others return VOLLEY_FAILED, and volley_error names who is
 * missing: up to 32 processes all of them tell, with more rank 0 does. What MPI has begun by then stays with comm. So
 * each of the others calls a function with comm again, when it likes, and goes on waiting there; who comes late gets
 * VOLLEY_FAILED in its first call if the others have not called again within its timeout. Until all have come together,
 * they make no collective call on comm that the missing process does not make after its call of the library. Messages
 * between two processes and other communicators work meanwhile. A process that never comes: end the job.
 *
 * When a run has failed at one process, MPI may have messages under way from and to the memory that any process has given it.
 * Keep that memory until MPI_Finalize. volley_free does so by itself. */

/* What the functions return: VOLLEY_OK, or what kind of error volley_error tells. */
enum {
	VOLLEY_OK = 0,
	VOLLEY_FAILED = 1, /* the run failed, here or at another process */
	VOLLEY_USAGE = 2,  /* an argument, or the processes disagree, or too much is lost */
	VOLLEY_WRONG = 3,  /* the result failed its check, not everything was recovered, or something is lost or damaged */
	VOLLEY_CANCELLED = 4, /* a process has called volley_cancel */
	VOLLEY_NONE = 5    /* nothing is there to recover, and all could be read: no process has protected yet, or all have lost it */
};

/* How to encode. A member that is 0 has its default; all processes give the same. */
typedef struct volley_options {
	const char *field;     /* 2^8, as volley fields lists them */
	const char *matrix;    /* cauchy, as volley encode --help lists them */
	const char *algorithm; /* auto */
	int ports;             /* 0: as many messages at a time as suit the network; or p of the paper's model */
	double timeout;        /* seconds without a message, or until all have called, until the run fails: 30; below 0: never */
	size_t memory;         /* bytes of packets that a process holds at a time: 64 MiB */
	int unchecked;         /* leave the check of the result out */
	const char *network;   /* RATE/LATENCY such as 1gbit/50us, or with slower links 1gbit/50us,7:0.5; NULL: 10gbit/20us */
} volley_options;

/* Encodes: with x_i the packet of process i of comm, of bytes bytes and padded with zeros to
 * the longest, coded becomes the sum of A[i][rank] * x_i over a finite field. It has room for
 * coded_bytes, at least the longest packet, apart from packet. Bytes are symbols, little-endian, so bytes is a
 * multiple of a symbol's; every byte is one over 2^8, every two are over 2^16.
 *
 * options may be NULL. */
int volley_encode(MPI_Comm comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options);

/* The same by the communicator's Fortran handle (comm, or comm%MPI_VAL). */
int volley_encode_f(MPI_Fint comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes, const volley_options *options);

/* Decodes: brings packets back that volley_encode has encoded. Each process has its packet, unless
 * lost is not 0, and its coded packet, unless coded is NULL. Afterwards each has its packet. With
 * the matrix cauchy any K of the 2 K packets and coded packets are enough. Where too few are left
 * it returns VOLLEY_USAGE at all processes, and packet is as it was.
 *
 * bytes is the length of the packet. Where it is lost, packet has room for that and obtains it; a
 * process that does not know the length gives coded_bytes of others, and has zeros after the end.
 * coded_bytes is the length of the longest packet, at all processes that have a coded packet.
 * The result is checked for errors of the run, not for packets that are damaged: keep a checksum.
 *
 * All processes of comm call it, as many as have encoded, in the same order and with the same
 * options. */
int volley_decode(MPI_Comm comm, void *packet, size_t bytes, int lost, const void *coded, size_t coded_bytes, const volley_options *options);

/* The same by the communicator's Fortran handle. */
int volley_decode_f(MPI_Fint comm, void *packet, size_t bytes, int lost, const void *coded, size_t coded_bytes, const volley_options *options);

/* How to protect and recover. A member that is 0 has its default; all processes give the same. */
typedef struct volley_group_options {
	double timeout;      /* seconds without a message, or until all have called, until the run fails: 30; below 0: never */
	size_t memory;       /* bytes of packets that a process holds at a time: 64 MiB */
	const char *key;     /* path of a file with the key of the group, the same key at all processes, as volley protect --key:
	                        none. "none": do not check, and protect without a key */
	const char *digest;  /* sha256, blake3, or xxh3, which finds accidents only and goes with no key: that of the last
	                        run, or sha256 */

	long long *step;     /* not NULL: path is a root of snapshots, directories step-N in it. The call takes that of *step or, for
	                        VOLLEY_LATEST, the newest, and sets *step to the one that it has taken */
	int retain;          /* protect, with step: then remove snapshots older than the newest retain that can be recovered: none */

	int set_size;        /* cut the processes into sets of at most so many, each a group of its own, of which any tolerate nodes
	                        may be lost: one group. Nodes keep their sets as long as they are protected */
	const char *domain;  /* what fails together with this process, such as its host or rack: no two of a set have the same. The
	                        processes give each its own, or all none: its host, as far as that is possible */
} volley_group_options;

/* The newest snapshot, in step of the options. */
enum { VOLLEY_LATEST = -1 };

/* Protects the files of a group of nodes, such as a checkpoint that each has written. After it
 * any tolerate of the nodes may be lost, and volley_recover brings them back. A node is a
 * directory with everything below it, and path is that of this process's node, which no other
 * process has. It gets parity and records in path/.volley.
 *
 * All processes of comm, 2 or more, call it when their files are written and closed, with the
 * same tolerate, and leave the files alone until it returns. Called again, it codes again what
 * has changed, and a tolerate of 0 is that of the last call; until that is complete at all nodes
 * the earlier protection is in force. options may be NULL.
 *
 * It returns VOLLEY_USAGE where path is NULL, empty or no directory, tolerate is not from 1
 * to the number of processes less 1, nor 0 after an earlier call, the key is not that of the
 * group, or most files of a node are deleted or have changed, and less has happened at most other nodes: volley protect
 * with --accept is for people. It returns VOLLEY_FAILED where another run uses the directory. Where
 * only some processes have such an error, the others return the same. With sets, the error of one
 * is that of all. */
int volley_protect(MPI_Comm comm, const char *path, int tolerate, const volley_group_options *options);

/* The same by the communicator's Fortran handle; path ends with a null character. */
int volley_protect_f(MPI_Fint comm, const char *path, int tolerate, const volley_group_options *options);

/* Brings back what is lost or damaged of a group that volley_protect, or volley protect, has
 * protected, as it was then. A directory that is lost is made. A file whose content and time
 * differ was changed since, and stays as it is: volley recover --revert changed brings it back.
 *
 * All processes of comm call it, as many as have protected: path is the directory of the node
 * of the same rank, or where it is to be. With step they may be more or fewer, in any order: what processes
 * had that are missing then lies in .spare-I/step-N below the paths of others, and who is new may have nothing. If all is
 * whole nothing is written. options may be NULL.
 *
 * It returns VOLLEY_USAGE at all processes, and has written nothing, where more nodes are lost
 * than the group tolerates, nodes contradict each other, or the group has another number of them; VOLLEY_NONE where no
 * node has anything of Volley's, as before the first checkpoint. It returns VOLLEY_WRONG where some files could not
 * be brought back, and the others were. */
int volley_recover(MPI_Comm comm, const char *path, const volley_group_options *options);

/* The same by the communicator's Fortran handle; path ends with a null character. */
int volley_recover_f(MPI_Fint comm, const char *path, const volley_group_options *options);

/* Makes a directory for the files of a snapshot, empty, and writes its name into path, which has room for bytes.
 * volley_protect with that step gives it the name root/step-N, when all processes have called: a snapshot that is not
 * complete never counts. No other process takes part. */
int volley_step_path(const char *root, long long step, char *path, size_t bytes);

/* How the nodes of a group are: of the set of this process, where there are sets. */
typedef struct volley_report {
	int is_protected;
	int whole;          /* nothing is lost, damaged or changed */
	int recoverable;    /* volley_recover brings back all that is lost or damaged */
	int nodes, tolerate;
	int broken;         /* nodes that are lost or damaged, or cannot be read */
	int lost;           /* of these: nodes of which nothing is left */
	int may_lose;       /* more nodes, whichever they are, so that all of theirs comes back */
	int set, sets;      /* the number of the set, and how many there are */
	long long files_at_risk; /* that would not come back if may_lose + 1 more nodes are lost */
	long long since;    /* seconds since 1970 when the generation came into force; 0: not known */
	long long generation;
	long long step;     /* of the snapshot; VOLLEY_LATEST: path is no root */
} volley_report;

/* Say how the nodes are, and change no file of theirs: volley_verify reads all of them, and compares it with what was protected,
 * volley_status goes by names, lengths and times. All processes of comm call it. They return VOLLEY_OK where all is
 * there, or was changed by its users, and VOLLEY_WRONG where something is lost or damaged, or volley_protect would refuse
 * what users have done as an accident, or the group is not protected: volley_error names the nodes. */
int volley_verify(MPI_Comm comm, const char *path, const volley_group_options *options, volley_report *report);
int volley_status(MPI_Comm comm, const char *path, const volley_group_options *options, volley_report *report);

/* Ends the protection, and removes path/.volley. Files stay. All processes of comm call it. Where something is lost or
 * damaged it returns VOLLEY_USAGE, and has removed nothing. */
int volley_unprotect(MPI_Comm comm, const char *path, const volley_group_options *options);

/* The same by the communicator's Fortran handle; path ends with a null character. */
int volley_verify_f(MPI_Fint comm, const char *path, const volley_group_options *options, volley_report *report);
int volley_status_f(MPI_Fint comm, const char *path, const volley_group_options *options, volley_report *report);
int volley_unprotect_f(MPI_Fint comm, const char *path, const volley_group_options *options);

/* A buffer is a piece of this process's memory: bytes from data on. */
typedef struct volley_buffer {
	void *data;
	size_t bytes;
} volley_buffer;

/* Protects buffers in memory, without files: parity of the buffers of all processes, from which those of any tolerate of
 * them come back. Each process has count buffers, of any number and lengths, and room for the parity: parity_bytes, as many
 * as volley_parity_bytes says, or more. That is tolerate/(K-tolerate) of the data of the process that has most, with K
 * processes, and a little more. The parity describes itself: the library keeps nothing. Its digest is xxh3 or, with a
 * key, sha256, unless options say otherwise. Of options, timeout, memory, key and digest are for buffers: the
 * others stay 0.
 *
 * All processes of comm, 2 or more, call it, and change no buffer meanwhile. When it has
 * returned VOLLEY_OK at one process, the parity of all is complete. Keep two sets of buffers, each with its parity,
 * and protect them in turns: what the last call has protected is recovered while the next one runs, and has to stay as
 * it is until that has returned VOLLEY_OK. Keep the number of the step in a buffer of each set. If a process dies,
 * recover both sets, and go on from the one that comes back with the larger step.
 *
 * It returns VOLLEY_USAGE where an argument is wrong, parity overlaps a buffer, or there is no room. Where only some processes have such an error,
 * the others return the same. */
int volley_protect_buffers(MPI_Comm comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options);

/* Sets parity_bytes to what volley_protect_buffers takes for buffers of these lengths, the same at all processes, which
 * all call it. data may be NULL. */
int volley_parity_bytes(MPI_Comm comm, const volley_buffer *buffers, int count, int tolerate,
	const volley_group_options *options, size_t *parity_bytes);

/* Brings back the buffers and the parity of processes that are lost. There lost is not 0, and both are written, whatever
 * is in them. No two overlap. Their lengths are as protected: see volley_buffer_sizes. The other processes give what they had. What is
 * damaged of that, or was changed since, comes back, too; then volley_error tells what, although VOLLEY_OK is returned.
 *
 * All processes of comm call it, as many as have protected, each with what the same rank had.
 * Where too much is lost, or processes have parity of two calls, it returns VOLLEY_USAGE at all of them, and has written
 * nothing; VOLLEY_NONE where no process has any parity. After another failure call it again: who was lost is lost again. */
int volley_recover_buffers(MPI_Comm comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options);

/* Tells a process that has lost everything what to allocate. All processes of comm call it. parity is what this process
 * has, of parity_bytes, or NULL where it is lost. Then parity_bytes is the room to make for parity, count how many
 * buffers this process had, and bytes their lengths, as far as there was room for count of them. */
int volley_buffer_sizes(MPI_Comm comm, const void *parity, size_t *parity_bytes, size_t *bytes, int *count,
	const volley_group_options *options);

/* A request is a call that goes on beside the caller. */
typedef int volley_request;
enum { VOLLEY_REQUEST_NULL = 0 };

/* These start what the functions without _start do, and return when all processes of comm have called them, or after the
 * timeout. What path, options and the list of buffers say is copied. What the buffers, the parity and the files hold stays
 * untouched until volley_wait returns or volley_test says done. Several requests may be open, on one communicator, too: all
 * processes start them in the same order.
 *
 * MPI was started for MPI_THREAD_MULTIPLE, by MPI_Init_thread: else they return VOLLEY_USAGE. No request is open in
 * MPI_Finalize, as with MPI's own: Open MPI waits for one; MPICH takes no locks then, and may end the job. */
int volley_protect_start(MPI_Comm comm, const char *path, int tolerate, const volley_group_options *options, volley_request *request);
int volley_recover_start(MPI_Comm comm, const char *path, const volley_group_options *options, volley_request *request);
int volley_protect_buffers_start(MPI_Comm comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request);
int volley_recover_buffers_start(MPI_Comm comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request);

/* Waits for a request, and returns what it has come to; volley_error tells its error. request becomes VOLLEY_REQUEST_NULL, of
 * which it returns VOLLEY_OK at once. Any thread may wait, and one of several that wait for the same request gets its
 * result: the others return VOLLEY_USAGE, as for a copy of a request that is over. */
int volley_wait(volley_request *request);

/* Where the request is over, sets done to 1 and does as volley_wait does; else sets done to 0 and returns VOLLEY_OK. */
int volley_test(volley_request *request, int *done);

/* Sets done and total to the bytes of this process that are read or written so far, and in all. total may grow while the run
 * finds out what there is to do. Both are 0 for VOLLEY_REQUEST_NULL. */
int volley_progress(const volley_request *request, unsigned long long *done, unsigned long long *total);

/* Ends the run of a request at all processes, when this one or another calls it, and returns at once. volley_wait or
 * volley_test then return VOLLEY_CANCELLED at all of them, or what the run has come to, where it was over. What
 * was protected before stays in force, of directories. Of buffers nothing of this set is in force then: the other set is.
 * The next call completes what was cut off. */
int volley_cancel(const volley_request *request);

/* Sets data to bytes of memory, zero, which belong to this process. Where all processes of comm run on one host, all of them
 * reach this memory, and volley_run uses packets and coded packets where they lie in it. Elsewhere it is ordinary memory: a
 * program need not care. All processes of comm call it with the same bytes. Where it fails, data becomes NULL. */
int volley_alloc(MPI_Comm comm, size_t bytes, void **data);

/* Gives memory of volley_alloc back, also after MPI_Finalize; NULL is VOLLEY_OK. No other process takes part. Where messages
 * of a run that has failed are still under way, the memory stays until the process ends. volley_free returns VOLLEY_USAGE, and
 * has freed nothing, where volley_alloc has not set data, data was freed before, or a request of volley_encode_init uses it. */
int volley_free(void *data);

/* Makes volley_encode ready to be run any number of times, by volley_run, on what lies at packet then: the persistent
 * collective of MPI. All processes of comm call it, and the arguments are those of volley_encode. coded_bytes is at least the
 * longest packet, or all return VOLLEY_USAGE. The request has a duplicate of comm, which may be freed. Processes that
 * have different options get VOLLEY_USAGE, here and not in runs.
 *
 * Memory of volley_alloc is used where it lies when the packets and coded packets of all processes lie in such memory, made
 * for the same processes in the same order, and all packets are equally long. Else they are
 * copied, as volley_encode does. options.algorithm and options.ports have the packets travel as messages. */
int volley_encode_init(MPI_Comm comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes,
	const volley_options *options, volley_request *request);

/* Encodes once, and returns when the coded packet is there and checked. All processes call it equally often. It needs no
 * thread of MPI's. When a run has failed, so do all later ones of that request: other requests of comm work on. It
 * returns VOLLEY_USAGE for VOLLEY_REQUEST_NULL, after volley_request_free, while another thread runs it, for a request of
 * another kind, and after MPI_Finalize. */
int volley_run(volley_request *request);

/* Frees a request of volley_encode_init, and request becomes VOLLEY_REQUEST_NULL, of which it returns VOLLEY_OK. All
 * processes call it, after their last run and before MPI_Finalize, which goes by requests that are left. volley_wait,
 * volley_test, volley_progress and volley_cancel are not for such requests. */
int volley_request_free(volley_request *request);

/* The same by the communicator's Fortran handle. */
int volley_alloc_f(MPI_Fint comm, size_t bytes, void **data);
int volley_encode_init_f(MPI_Fint comm, const void *packet, size_t bytes, void *coded, size_t coded_bytes,
	const volley_options *options, volley_request *request);

/* The same by the communicator's Fortran handle; path ends with a null character. */
int volley_protect_buffers_f(MPI_Fint comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options);
int volley_parity_bytes_f(MPI_Fint comm, const volley_buffer *buffers, int count, int tolerate,
	const volley_group_options *options, size_t *parity_bytes);
int volley_recover_buffers_f(MPI_Fint comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options);
int volley_buffer_sizes_f(MPI_Fint comm, const void *parity, size_t *parity_bytes, size_t *bytes, int *count,
	const volley_group_options *options);
int volley_protect_start_f(MPI_Fint comm, const char *path, int tolerate, const volley_group_options *options, volley_request *request);
int volley_recover_start_f(MPI_Fint comm, const char *path, const volley_group_options *options, volley_request *request);
int volley_protect_buffers_start_f(MPI_Fint comm, const volley_buffer *buffers, int count, int tolerate,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request);
int volley_recover_buffers_start_f(MPI_Fint comm, const volley_buffer *buffers, int count, int lost,
	void *parity, size_t parity_bytes, const volley_group_options *options, volley_request *request);

/* For bindings of other languages. volley_encode_new_f encodes into memory that it asks allocate for, in this thread, of the
 * length of the longest packet. volley_refuse_f stands for a call that a binding cannot make, as its caller's arguments are
 * wrong: the other processes hear why, and do not wait. It returns VOLLEY_USAGE. */
int volley_encode_new_f(MPI_Fint comm, const void *packet, size_t bytes, void *(*allocate)(size_t bytes), const volley_options *options);
int volley_refuse_f(MPI_Fint comm, const char *why, double timeout);

/* What went wrong in the last call in this thread, in one line; "" if nothing did. It is
 * good until the next call in this thread. */
const char *volley_error(void);

/* The version of the library. */
const char *volley_version(void);

#ifdef __cplusplus
}
#endif

#endif
