package executor

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"volley/field"
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

// TestCompactMap: maps that are made ready a block at a time are those that are ready.
func TestCompactMap(t *testing.T) {
	for _, name := range []string{"2^8", "2^16", "257", "bls12-381"} {
		f := fieldtest.Parse(t, name)
		x := &Executable{plan: planOver{f: f}}
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
		packets := func(n int, seed uint64) (list [][]byte) {
			for symbols := range slices.Chunk(elements(n, 3, seed), 3) {
				packet := make([]byte, len(symbols)*f.SymbolBytes())
				for i, e := range symbols {
					field.PutSymbol(f, packet[i*f.SymbolBytes():], e)
				}
				list = append(list, packet)
			}
			return list
		}
		for _, shape := range [][2]int{{1, 1}, {3, 5}, {1, 2*compactBlock + 7}, {70, 40}, {2, compactBlock + 1}} {
			rows, columns := shape[0], shape[1]
			entries, in := elements(rows, columns, 1), packets(columns, 2)
			for _, add := range []bool{false, true} {
				t.Run(fmt.Sprint(name, shape, add), func(t *testing.T) {
					got, want := packets(rows, 3), packets(rows, 3)
					x.newMap(entries, columns).Apply(want, in, add)
					newCompactMap(x, entries).Apply(got, in, add)
					if !slices.EqualFunc(got, want, bytes.Equal) {
						t.Error("other packets")
					}
				})
			}
		}
	}
}
