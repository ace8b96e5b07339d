// Package algo compiles encoding problems to plans.
//
// Two ideas carry everything. A [schedule.Step] is a schedule for one group of
// processors that together compute one small matrix. A [schedule.Partition] is a partition
// of the processors into groups that run the same step side by side. A universal
// algorithm is one layer of one group; an algorithm for a structured matrix is
// a product of layers.
//
// A step writes its schedule and its coding in one place, for one member of the
// group, on a [schedule.Builder]; schedules without coefficients come from the same code.
//
// Package matrix says how a structured matrix factors into layers; structured.go
// fuses neighbouring ones. Steps that take a matrix on a condition (windows, tree-lift,
// lifted) share condition.go. What is not all-to-all has plans of its own: sources and
// sinks (sinks…, pipeline…), slices (exchange), trees for control traffic.
//
// [Algorithms] is the registry: a new algorithm is a file with its step and a
// row there. [Choose] takes the plan that costs least.
//
// Throughout, K is the number of processors, p the number of ports, clog(n) the
// least t with (p+1)^t >= n, and the source "paper" is C. Wang and N. Raviv,
// "All-to-All Encode in Synchronous Systems" (arXiv:2205.05183).
package algo
