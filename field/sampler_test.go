package field_test

import (
	"math/rand/v2"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// TestSampler checks that a packet is filled with elements only, and with each of a small field about equally often.
func TestSampler(t *testing.T) {
	for _, name := range []string{"2", "3", "2^4", "31", "2^8", "257", "2^16", "goldilocks", "bls12-381"} {
		f := fieldtest.Parse(t, name)
		q := int(min(f.Order().Uint64()-1, 1<<9)) + 1
		packet := make([]byte, 1000*q*f.SymbolBytes())
		field.FillRandom(f, packet, rand.New(rand.NewPCG(1, 1)).Uint64)
		if i := f.FirstInvalid(packet); i >= 0 {
			t.Errorf("%s: symbol %d is none", name, i)
		}
		seen := map[field.Element]int{}
		for i := 0; i < len(packet); i += f.SymbolBytes() {
			seen[field.Symbol(f, packet[i:])]++
		}
		for e, n := range seen {
			if q <= 257 && (len(seen) != q || n < 800 || n > 1200) { // over six standard deviations
				t.Errorf("%s: %v of %d elements came %d times of %d", name, e, len(seen), n, 1000*q)
			}
		}
	}
}
