//go:build verifyall

package group

import "testing"

// TestVerifyAllCrash interrupts every verb at every call.
func TestVerifyAllCrash(t *testing.T) { everyCall(t, 0, interruptions) }
