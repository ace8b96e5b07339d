package explore

import (
	"os"
	"testing"

	"volley/tune"
)

// TestMain keeps what was measured on this machine out of the tests.
func TestMain(m *testing.M) {
	os.Setenv(tune.Variable, "off")
	os.Exit(m.Run())
}
