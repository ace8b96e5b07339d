//go:build verifyall

package algo_test

import (
	"sync/atomic"
	"testing"

	"volley/algo"
)

// TestVerifyAll compares the transfer matrix of every algorithm with A, random
// over three fields: all K from 1 to 70 and p from 1 to 4, and larger K.
func TestVerifyAll(t *testing.T) {
	var plans, entries atomic.Int64
	t.Run("plans", func(t *testing.T) {
		for _, name := range []string{"2^8", "257", "3^4"} {
			f := parse(t, name)
			check := func(algorithm algo.Algorithm, k, ports int) {
				t.Helper()
				checkTransfer(t, algorithm, random(t, f, k, uint64(1000*k+ports)), ports)
				plans.Add(1)
				entries.Add(int64(k * k))
			}
			for _, algorithm := range forAnyMatrix() {
				t.Run(name+"/"+algorithm.Name, func(t *testing.T) {
					t.Parallel()
					for k := 1; k <= 70; k++ {
						for ports := 1; ports <= 4; ports++ {
							check(algorithm, k, ports)
						}
					}
					for _, k := range []int{81, 125, 128, 256, 257} {
						for _, ports := range []int{1, 2, 4} {
							check(algorithm, k, ports)
						}
					}
				})
			}
		}
	})
	t.Logf("%d plans, %d coefficients compared", plans.Load(), entries.Load())
}
