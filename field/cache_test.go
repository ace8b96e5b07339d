package field

import (
	"fmt"
	"testing"
)

// TestCacheIsBounded parses more fields than are kept.
func TestCacheIsBounded(t *testing.T) {
	primes := primesFrom(1000)
	for n := range 3 * maxCached {
		if _, err := Parse(fmt.Sprint(primes[n])); err != nil {
			t.Fatal(err)
		}
		if len(cache.fields) > maxCached {
			t.Fatalf("%d fields are kept", len(cache.fields))
		}
	}
}

// primesFrom returns 200 primes above n.
func primesFrom(n uint64) []uint64 {
	var list []uint64
	for ; len(list) < 200; n++ {
		if fs := factor(n); len(fs) == 1 && fs[0].m == 1 {
			list = append(list, n)
		}
	}
	return list
}
