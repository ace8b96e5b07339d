// Package conditional has an algorithm that takes a square matrix A of which some minors are not zero. Where they are, it
// tries other orders of the processors and other parameters.
//
// It needs fewer packets than the universal algorithm, for whole packets and a round or two more.
package conditional
