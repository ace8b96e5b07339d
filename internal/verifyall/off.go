//go:build !verifyall

// Package verifyall tells tests whether they are to check all that they can, as make verify-all
// wants it, or what takes a minute or two altogether.
package verifyall

// Enabled reports whether the tag verifyall is set.
const Enabled = false

// Most returns all with the tag verifyall, and else some.
func Most(some, all int) int { return some }
