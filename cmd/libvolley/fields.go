//go:build mpi

package main

import _ "volley/field/curves" // goldilocks, bls12-381 and bn254, as every program names fields by their names
