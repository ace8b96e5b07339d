package volley_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"volley"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix/matrixtest"
	"volley/transport"
	"volley/verify"
)

// A slipping field makes one mistake: one of its maps, but those of the check, flips a bit.
type slipping struct {
	field.Field
	slip     *atomic.Bool
	output   int
	fraction float64 // of the packet that lies before the bit
}

type slippingMap struct {
	field.Map
	slipping
}

func (s slipping) Map(rows [][]field.Element) field.Map {
	if len(rows) == verify.RelationBytes(s.Field)/s.SymbolBytes() {
		return s.Field.Map(rows)
	}
	return slippingMap{s.Field.Map(rows), s}
}

func (m slippingMap) Apply(out, in [][]byte, add bool) {
	m.Map.Apply(out, in, add)
	if n := len(out[0]); n > 0 && m.slip.CompareAndSwap(true, false) {
		out[m.output%len(out)][int(m.fraction*float64(n-1))] ^= 1
	}
}

// TestSlip has a kernel make a mistake in one byte of one result, at the only rank and at ranks that share memory.
// Without the check nobody notices; with it the error names the processor. The next run, which is right, passes.
func TestSlip(t *testing.T) {
	const k, size = 6, 50_000
	for number, name := range []string{"2^8", "2^16", "257"} {
		s := slipping{Field: fieldtest.Parse(t, name), slip: new(atomic.Bool)}
		for output, fraction := range []float64{0, 0.3, 1} {
			if s.output, s.fraction = 2*output, fraction; name == "257" {
				s.fraction = 0 // the low byte of a symbol
			}
			a := matrixtest.Random(t, s, k, uint64(7700+10*number+output))
			packets := randomPackets(s.Field, slices.Repeat([]int{size / s.SymbolBytes()}, k)...)
			want := product(a, packets)
			for _, ranks := range []int{1, 3} {
				run := func(e *volley.Encoder) (errs []error, spoilt []int) {
					results := make([][]byte, k)
					errs = atRanks(t, ranks, []int{ranks}, func(ctx context.Context, tr transport.Transport) error {
						var list []volley.Packet
						for proc := tr.Rank() * k / ranks; proc < (tr.Rank()+1)*k/ranks; proc++ {
							list = append(list, volley.Packet{Data: packets[proc], Result: &results[proc]})
						}
						_, err := e.Run(ctx, tr, list...)
						return err
					})
					for proc := range want {
						if !bytes.Equal(results[proc], want[proc]) {
							spoilt = append(spoilt, proc)
						}
					}
					if s.slip.Load() {
						t.Fatal("no kernel made a mistake")
					}
					return errs, spoilt
				}
				s.slip.Store(true)
				errs, spoilt := run(mustEncoder(t, a, volley.WithCheck(false)))
				if errors.Join(errs...) != nil || len(spoilt) != 1 {
					t.Fatalf("%s, %d ranks: unchecked, %v are wrong: %v", name, ranks, spoilt, errs)
				}
				checked := mustEncoder(t, a)
				s.slip.Store(true)
				errs, _ = run(checked)
				for rank, err := range errs {
					if failed := new(verify.CheckError); !errors.As(err, &failed) || failed.Proc != spoilt[0] {
						t.Errorf("%s, rank %d of %d: %v, want that %v is wrong", name, rank, ranks, err, spoilt)
					}
				}
				if errs, spoilt = run(checked); errors.Join(errs...) != nil || len(spoilt) > 0 {
					t.Errorf("%s, %d ranks: the next run: %v, %v are wrong", name, ranks, errs, spoilt)
				}
			}
		}
	}
}
