//go:build mpi && !mpich

package mpi

// #cgo pkg-config: mpi
import "C"
