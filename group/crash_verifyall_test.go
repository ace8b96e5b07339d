//go:build verifyall

package group

import (
	"fmt"
	"testing"
)

// TestVerifyAllCrash interrupts every verb at every call.
func TestVerifyAllCrash(t *testing.T) { everyCall(t, 0, interruptions) }

// TestVerifyAllChanged interrupts runs that change parity at every call of three of them and at some of the others, and a
// recover of such parity at every call.
func TestVerifyAllChanged(t *testing.T) {
	for i := range chain {
		tries := 8
		if i == 1 || i == 3 || i == 8 {
			tries = 0
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			crashChanged(t, i, tries)
		})
	}
	t.Run("recover", func(t *testing.T) {
		t.Parallel()
		crashMend(t, 0)
	})
}
