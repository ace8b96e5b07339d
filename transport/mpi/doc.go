// Package mpi connects the processes of an MPI job: rank r of the group is rank r of a
// communicator. It is built with the tag mpi and needs cgo, pkg-config and an MPI library,
// Open MPI or MPICH, of which it uses the C interface of MPI 3.0 alone.
//
// A message goes from where its parts lie, in pieces of some kilobytes, each an MPI message
// that is asked for before it comes. Of a long message the later ones wait for leave, so
// that senders do not take a receiver's link from each other. Messages of the group's own
// (leave, an abort, whom a rank waits for) have a tag of their own and are answered by
// whoever waits, or by a keeper that looks now and then.
//
// MPI is called by one thread at a time. Where the library was started with less than
// MPI_THREAD_SERIALIZED, as by a C program's MPI_Init, it is called by the thread alone
// that started it; see [Drive].
package mpi
