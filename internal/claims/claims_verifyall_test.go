//go:build verifyall

package claims

import "testing"

// TestVerifyAllClaims is TestClaims for what takes longer.
func TestVerifyAllClaims(t *testing.T) { runClaims(t, "verifyall") }
