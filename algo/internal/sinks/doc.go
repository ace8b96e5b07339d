// Package sinks has the plans for sources and sinks that differ, for packets in pieces, and for exchanges of slices.
package sinks
