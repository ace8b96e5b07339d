package field_test

import (
	"runtime/debug"
	"testing"
)

// TestMain has the garbage collector run seldom: tests make many packets and keep few.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	m.Run()
}
