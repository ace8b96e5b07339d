// Package baseline has schedules that are known from MPI libraries, to compare with.
package baseline
