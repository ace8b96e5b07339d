package families

import (
	"testing"

	"volley/algo"
	_ "volley/field/curves"
)

// TestRegistered checks that the planner knows the algorithms.
func TestRegistered(t *testing.T) {
	for _, a := range Algorithms {
		if err := algo.Register(a); err == nil {
			t.Errorf("%s was registered twice", a.Name)
		}
	}
}
