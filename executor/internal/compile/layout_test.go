package compile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
)

// planOver is a plan of which only the field matters.
type planOver struct {
	plan.Plan
	f field.Field
}

func (p planOver) Info() plan.Info { return plan.Info{Field: p.f} }

// TestCompactMap: maps that are made ready when they are used are those that are ready.
func TestCompactMap(t *testing.T) {
	for _, name := range []string{"2^8", "2^16", "257", "bls12-381"} {
		f := fieldtest.Parse(t, name)
		x := &Executable{Plan: planOver{f: f}}
		elements := func(rows, columns int, seed uint64) (list []field.Element) {
			a, err := matrix.Random(f, rows, columns, seed)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows * columns {
				list = append(list, a.At(i/columns, i%columns))
			}
			return list
		}
		packets := func(n, symbols int, seed uint64) (list [][]byte) {
			sampler, rng := field.NewSampler(f), rand.New(rand.NewPCG(seed, 1))
			for range n {
				packet := make([]byte, symbols*f.SymbolBytes())
				sampler.Fill(packet, rng.Uint64)
				list = append(list, packet)
			}
			return list
		}
		for _, shape := range [][2]int{{1, 1}, {3, 5}, {70, 40}} {
			rows, columns := shape[0], shape[1]
			entries := elements(rows, columns, 1)
			c := &compiler{x: x, field: f, short: f.SymbolBytes() <= 4}
			var coefs []coef
			for _, e := range entries {
				coefs = append(coefs, c.coefOf(e))
			}
			for _, symbols := range []int{3, compactBytes/f.SymbolBytes() + 1} {
				t.Run(fmt.Sprint(name, shape, symbols), func(t *testing.T) {
					in, got, want := packets(columns, symbols, 2), packets(rows, symbols, 3), packets(rows, symbols, 3)
					x.newMap(func(int) {}, entries, columns).Apply(want, in, false)
					c.newCompactMap(coefs).Apply(got, in, false)
					if !slices.EqualFunc(got, want, bytes.Equal) {
						t.Error("other packets")
					}
				})
			}
		}
	}
}
