// Package families has algorithms that are of interest to theory. Importing it registers
// them with package algo, so that the planner and the command line know them.
//
// One of them, in package conditional, takes a square matrix on a condition and needs fewer
// packets than the universal algorithm. The others are to compare with, or gain time in few
// cases only. The README.md of lab says how each works.
package families
