// Package volley computes coded packets where the data already is.
//
// K processors hold a packet each: x_0 … x_{K-1}. After an all-to-all encode processor k holds column k of x·A, the
// combination Σ_i A[i][k]·x_i, for a matrix A over a finite field that all of them know. A has a row for each source,
// which holds a packet, and a column for each sink, which gets a coded one; mostly every processor is both. There is no
// master, and no processor collects all data: the packets meet on the way.
//
// Every processor calls [Encode] with its own end of a transport and the same matrix and options:
//
//	coded, report, err := volley.Encode(ctx, t, a, packet, volley.WithNetwork(network))
//
// [NewEncoder] makes an [Encoder] once for many runs, and for packets that do not fit in memory. Processors of one
// process talk over package transport/local, whose Run starts them.
//
// A run costs C1 rounds and C2 packets in turn, about C1·β + C2·W·τ for packets of W bytes; see package plan.
package volley
