// Package mpi connects the processes of an MPI job: rank r of the group is rank r of a communicator. It is built with
// the tag mpi and needs cgo, pkg-config and an MPI library, Open MPI or MPICH, by the C interface of MPI 3.0.
//
// A message is sent from where its parts lie, and received where they are to lie, each long part as an MPI message.
// Within a machine these are whole. To another machine they are fragments below MPI's eager limit, and the later
// fragments of a long message wait for a clear-to-send, so that senders do not take a receiver's link from each other.
// Control messages (clear-to-send, an abort, whom a rank waits for) have a tag of their own.
//
// Of the goroutines that wait one polls, for all of the endpoint; else a goroutine makes progress now and then.
//
// MPI is called by one thread at a time. Where the library was started with less than MPI_THREAD_SERIALIZED, as by a C
// program's MPI_Init, it is called by the thread alone that started it; see [Drive].
package mpi
