// Package families has algorithms that are of interest to theory. Importing it registers
// them with package algo, so that the planner and the command line know them.
//
// They are to compare with, or gain time in few cases only. The README.md of lab says how each works.
package families
