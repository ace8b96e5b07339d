//go:build mpi && !mpich

package main

// A file for each library: Go's build cache tells them apart by it, and not by what pkg-config says.

// #cgo pkg-config: mpi
import "C"
