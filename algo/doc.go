// Package algo compiles encoding problems to plans: the registry of algorithms, the planner, and lower bounds.
//
// [Choose] takes the plan of least model time; [Algorithms] and [Lookup] name what it chooses from, and [Register] adds
// an algorithm of one's own.
//
// Throughout, K is the number of processors, p the number of ports, clog(n) the least t with (p+1)^t >= n, and the
// source "paper" is C. Wang and N. Raviv, "All-to-All Encode in Synchronous Systems" (arXiv:2205.05183).
package algo
