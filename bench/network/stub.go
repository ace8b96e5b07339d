//go:build !(mpi && linux)

package main

import "errors"

// measure needs MPI.
func measure([]string) error {
	return errors.New("this program was built without MPI: build it for Linux with -tags mpi")
}
