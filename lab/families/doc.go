// Package families has algorithms that are of interest to theory. Importing it registers
// them with package algo, so that the planner and the command line know them.
//
// Most of them, in package conditional, take a square matrix on a condition and need fewer
// packets than the universal algorithm. Since packets may be cut, no user meets them. Others
// gain time in few cases only. The README.md of lab says how each works.
package families
