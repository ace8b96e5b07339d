//go:build verifyall

package verifyall

const Enabled = true

func Most(some, all int) int { return all }
