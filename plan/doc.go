// Package plan holds the intermediate form of every algorithm: who sends what to whom in which round (the schedule) and
// with which coefficients (the coding).
//
// A plan is data. Nothing here moves packets, starts goroutines or knows how a plan came about. Algorithms (package
// algo) compile to plans; verify computes what a plan does, sim what it costs, executor runs it on real bytes.
//
// # Words
//
//	K    processors, numbered 0 … K-1
//	p    ports: in a round a processor sends at most one message and receives at
//	     most one on each; port ρ sends to port ρ of the receiver
//	A    the matrix: row i multiplies the initial packet x_i, column j gives the
//	     coded packet y_j = Σ_i A[i][j]·x_i
//	C1   rounds
//	C2   Σ over rounds of the largest message of the round, in elements
//	C3   multiply-adds per symbol at the busiest processor
//
// Rounds, ports, processors and slots count from 0, in code, files and messages alike. The model is the linear network
// model of Wang and Raviv, "All-to-All Encode in Synchronous Systems" (arXiv:2205.05183): a processor sends linear
// combinations of its own packets and of what it has received.
package plan
