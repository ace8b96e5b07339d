//go:build verifyall

package group

import "testing"

// TestVerifyAllCrash interrupts every verb at every call.
func TestVerifyAllCrash(t *testing.T) { everyCall(t, 0, interruptions) }

// TestVerifyAllDecide checks all groups of up to 5 nodes, in all orders.
func TestVerifyAllDecide(t *testing.T) { decideAll(t, 5, 5) }
