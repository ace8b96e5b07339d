// Package conditional has algorithms that take a square matrix A on a condition, such as that minors of it are not
// zero. Where A does not meet it, they try other orders of the processors and other parameters.
//
// Where A meets it they need fewer packets than the universal algorithm, for whole packets and a round or two more.
// What their steps have in common is in condition.go.
package conditional
