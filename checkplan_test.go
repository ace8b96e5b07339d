package volley

import (
	"testing"

	"volley/collective"
	"volley/field/fieldtest"
	"volley/matrix"
)

// TestCheckPlan checks that the final check is another algorithm than the run, among few
// processors and among many.
func TestCheckPlan(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{5, collective.Many} {
		a, err := matrix.Random(f, k, k, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"universal", "prepare-and-shoot", "bruck-allgather", "ring-allgather", "direct"} {
			e, err := NewEncoder(a, WithAlgorithm(name))
			if err != nil {
				t.Fatal(err)
			}
			chosen, err := e.choose(e.model(1))
			if err != nil {
				t.Fatal(err)
			}
			check, err := e.checkPlan(chosen)
			if err != nil {
				t.Fatal(err)
			}
			if ran, checks := chosen.Info().Algorithm, check.Info().Algorithm; ran == checks {
				t.Errorf("K = %d: a run of %s is checked by %s", k, ran, checks)
			}
		}
	}
}
