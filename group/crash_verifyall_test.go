//go:build verifyall

package group

import (
	"fmt"
	"testing"

	"volley/internal/disk/disktest"
)

// TestVerifyAllCrash interrupts every verb at every call.
func TestVerifyAllCrash(t *testing.T) { everyCall(t, 0, interruptions) }

// TestVerifyAllChanged cuts the power at every call of three runs that change parity and of a recover of such parity, and
// interrupts the other runs of the chain at some calls.
func TestVerifyAllChanged(t *testing.T) {
	cuts := []disktest.Interruption{disktest.CutSome}
	for i := range chain {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if i == 1 || i == 3 || i == 5 {
				crashChanged(t, i, 0, cuts)
			} else {
				crashChanged(t, i, 4, interruptions)
			}
		})
	}
	t.Run("recover", func(t *testing.T) {
		t.Parallel()
		crashMend(t, 0, cuts)
	})
}
