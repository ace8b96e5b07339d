// Package fieldtest makes fields for tests.
package fieldtest

import (
	"testing"

	"volley/field"
)

// Parse is [field.Parse] for tests: an error fails the test.
func Parse(t testing.TB, name string) field.Field {
	t.Helper()
	f, err := field.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
