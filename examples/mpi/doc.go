//go:build !mpi

// The program mpi encodes in the processes of an MPI job; it is built with the tag mpi.
package main

import "log"

func main() { log.Fatal("build it with -tags mpi") }
