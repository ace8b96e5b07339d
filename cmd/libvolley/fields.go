//go:build mpi

package main

// Goldilocks, bls12-381 and bn254, as C programs name fields by their names.
import _ "volley/field/curves"
