package exchange

import (
	"runtime/debug"
	"testing"
)

// TestMain has the garbage collector run seldom: tests make many programs and keep none.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	m.Run()
}
