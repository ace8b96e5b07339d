// Package fuzzlimit holds fuzz tests to a time, and to memory in proportion to their input.
package fuzzlimit

import (
	"runtime"
	"testing"
	"time"
)

// The limits are so wide that a busy machine keeps them, and far below memory asked for by a number that was read.
const (
	longest = 20 * time.Second
	base    = 64 << 20
	perByte = 1 << 10
)

// Hold begins to measure. What it returns fails the test where more was allocated than n bytes of input may take. A test that
// runs beside others panics: what they allocate would count.
func Hold(t testing.TB, n int) (end func()) {
	t.Setenv("VOLLEY_MEASURED", "1") // which no parallel test may do
	var initial, after runtime.MemStats
	runtime.ReadMemStats(&initial)
	start := time.Now()
	return func() {
		t.Helper()
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-initial.TotalAlloc, uint64(base)+perByte*uint64(n); got > limit {
			t.Errorf("%d bytes of input take %d bytes of memory: want at most %d", n, got, limit)
		}
		if took > longest {
			t.Errorf("%d bytes of input take %v: want at most %v", n, took, longest)
		}
	}
}
