//go:build !mpi

// Libvolley is the library for C and Fortran programs that use MPI. It is built with the tag mpi, see volley.h.
package main

import "log"

func main() {
	log.Fatal("libvolley is a library: go build -tags mpi -buildmode=c-shared -o libvolley.so ./cmd/libvolley")
}
