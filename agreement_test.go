package volley

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"volley/collective"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// FuzzOwn lets words be anything: they are what is said, and what cannot be is noticed.
func FuzzOwn(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3), math.Float64bits(4), math.Float64bits(5), []byte{9})
	f.Fuzz(func(t *testing.T, a, b, c, d, e uint64, network []byte) {
		text := append(network, make([]byte, 24)...)
		words := []uint64{a, b % 3, b, 0, 0, 0, c, d, e}
		for i := range 3 {
			words[3+i] = binary.LittleEndian.Uint64(text[8*i:])
		}
		o := settingsOf(words)
		if !slices.Equal(o.words(), words) {
			t.Errorf("%d: %+v: %d", words, o, o.words())
		}
		if m := o.model(1); o.impossible() == "" && (m.Bytes < 0 || m.Beta < 0 || !(m.Tau >= 0) || !(m.Gamma >= 0)) {
			t.Errorf("%d: %+v is possible", words, o)
		}
	})
}

// TestImpossible has a rank say numbers that cannot be: all name it, and nobody makes room for
// them.
func TestImpossible(t *testing.T) {
	encoder := newEncoder(t, mustBuild(t, "2^8", "random:1", 3, 3))
	for _, c := range []struct {
		name string
		say  func(*settings)
	}{
		{"a negative length", func(g *settings) { g.Bytes = -1 }},
		{"a length", func(g *settings) { g.Bytes = math.MaxInt64 }},
		{"β", func(g *settings) { g.Beta = -1 }},
		{"τ", func(g *settings) { g.Tau = sim.PerByte(math.NaN()) }},
		{"γ", func(g *settings) { g.Gamma = sim.PerByte(math.Inf(1)) }},
	} {
		var errs [3]error
		local.Run(t.Context(), 3, func(ctx context.Context, tr transport.Transport) error {
			r := tr.Rank()
			if r < 2 {
				_, _, errs[r] = encoder.Encode(ctx, tr, []byte{1})
				return nil
			}
			own := encoder.settings(tr, 0)
			c.say(&own)
			collective.New(tr, 0).Greet(ctx, collective.Greeting{Verb: "encode", Version: Version, Terms: encoder.terms, Words: own.words()}, func(words []uint64) string { return settingsOf(words).impossible() })
			return nil
		})
		for r, err := range errs[:2] {
			if err == nil || !strings.Contains(err.Error(), "rank 2 says that ") {
				t.Errorf("%s: rank %d: %v", c.name, r, err)
			}
		}
	}
}
