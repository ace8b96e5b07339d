// Package families has algorithms that are of interest to theory. Importing it registers
// them with package algo, so that the planner and the command line know them.
//
// Most take a square matrix on a condition and beat the universal algorithm in packets,
// for whole packets and a round or two more. Since packets may be cut, no user meets them.
// Others gain time in few cases only.
//
// What their steps have in common is in condition.go; README.md says how each works.
package families
