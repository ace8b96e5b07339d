//go:build verifyall

package exchange

import (
	"sync/atomic"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// TestVerifyAllSinks compares the transfer matrix of every plan for sources and sinks
// with A: all K and R up to 24, p from 1 to 3, both kinds of sinks; over 257 and 2^8 in
// turn.
func TestVerifyAllSinks(t *testing.T) {
	fields := []field.Field{fieldtest.Parse(t, "257"), fieldtest.Parse(t, "2^8")}
	var plans atomic.Int64
	t.Run("families", func(t *testing.T) {
		for _, family := range sinksFamilies {
			for part := range 8 {
				t.Run(family.name, func(t *testing.T) {
					t.Parallel()
					everySinks(24, 3, func(k, r int, separate bool, ports int) {
						if (k+r)%8 == part {
							f := fields[(k+r/2)%2]
							plans.Add(int64(checkSinks(t, family, sinksProblem(t, randomMatrix(t, f, k, r), separate, ports))))
						}
					})
				})
			}
		}
	})
	t.Logf("%d plans", plans.Load())
}
