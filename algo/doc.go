// Package algo compiles encoding problems to plans: the registry of algorithms, the planner, and lower bounds.
//
// [Choose] takes the plan of least model time; [Algorithms] and [Lookup] name what it chooses from, and [Register] adds
// an algorithm of one's own.
//
// The algorithms are in packages of their own, each of which imports only those before it:
//
//   - schedule: what an algorithm is written with, such as builder, groups and broadcasts;
//   - internal/universal: prepare-and-shoot and its generalisation, for every matrix;
//   - internal/layers: products of layers, for matrices with structure;
//   - internal/exchange: sources and sinks, and exchanges of slices;
//   - internal/relay: several codewords among processors with several packets each.
//
// Throughout, K is the number of processors, p the number of ports, clog(n) the least t with (p+1)^t >= n, and the
// source "paper" is C. Wang and N. Raviv, "All-to-All Encode in Synchronous Systems" (arXiv:2205.05183).
package algo
