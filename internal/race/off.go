//go:build !race

// Package race tells tests whether the race detector is on, which makes sync.Pool drop
// some of what it is given, and everything slower.
package race

// Enabled reports whether the race detector is on.
const Enabled = false
