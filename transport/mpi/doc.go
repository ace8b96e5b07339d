// Package mpi connects the processes of an MPI job: rank r of the group is rank r of a
// communicator. It is built with the tag mpi and needs cgo, pkg-config and an MPI library,
// Open MPI or MPICH, of which it uses the C interface of MPI 3.0 alone.
//
// A message goes from where its parts lie, in fragments below MPI's eager limit, each an MPI
// message whose receive is posted before it comes. The later fragments of a long message wait
// for a clear-to-send, so that senders do not take a receiver's link from each other. Control
// messages (clear-to-send, an abort, whom a rank waits for) have a tag of their own. Whoever
// waits makes progress for all of the endpoint; while nobody does, a goroutine does so now and
// then.
//
// What is received takes buffers, which are used again. They never take more memory than the
// messages that a program held at a time.
//
// MPI is called by one thread at a time. Where the library was started with less than
// MPI_THREAD_SERIALIZED, as by a C program's MPI_Init, it is called by the thread alone
// that started it; see [Drive].
package mpi
