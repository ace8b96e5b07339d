//go:build !verifyall

// Package verifyall tells tests whether to check all they can, as make verify-all wants, or a minute or two's worth.
package verifyall

// Enabled reports whether the tag verifyall is set.
const Enabled = false

// Most returns all with the tag verifyall, and else some.
func Most(some, all int) int { return some }
