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

// must returns a value that comes without an error, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
