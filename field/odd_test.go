package field_test

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/race"
)

// oddFields are fields of odd characteristic of all kinds: of narrow and of wide lanes,
// with symbols of every size, and at the limits of the lanes.
var oddFields = []string{"3", "251", "257", "32749", "32771", "65521", "65537", "2147483647", "babybear", "koalabear", "goldilocks", "bls12-381", "bn254", "3^4", "7^2", "251^2", "13^4", "3^10"}

// TestPortable checks the operations on packets as they are where there are no vector instructions.
func TestPortable(t *testing.T) {
	for _, name := range oddFields {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSuite(field.Portable(name)).kernels(t)
		})
	}
}

// odd calls run with the fields as they are here and where there are no vector
// instructions.
func odd(t *testing.T, run func(t *testing.T, f field.Field)) {
	for _, name := range oddFields {
		t.Run(name, func(t *testing.T) {
			run(t, fieldtest.Parse(t, name))
			run(t, field.Portable(name))
		})
	}
}

// packets returns packets of equal symbols, or bytes where there is no symbol, offset
// bytes from an aligned address, and all that is around them.
func packets(f field.Field, n, symbols, offset int, e *field.Element, fill byte) (all [][]byte, around []byte) {
	size := symbols*f.SymbolBytes() + 64
	around = bytes.Repeat([]byte{fill}, n*size+64)
	for i := range n {
		p := around[64+i*size+offset:][:symbols*f.SymbolBytes()]
		for k := 0; e != nil && k < len(p); k += f.SymbolBytes() {
			field.PutSymbol(f, p[k:], *e)
		}
		all = append(all, p)
	}
	return all, around
}

// TestMapOfLargest sums products of the largest codes, where characteristics are odd
// primes, as often as sums are reduced on the way, and more. The largest coefficients
// are those that are so in Montgomery form.
func TestMapOfLargest(t *testing.T) {
	odd(t, func(t *testing.T, f field.Field) {
		minusOne := f.Sub(field.Element{}, field.One)
		of := func(v *big.Int) field.Element {
			e, _ := field.FromInt(v.Mod(v, f.Characteristic()))
			return e
		}
		for i, inputs := range []int{1, 2, 3, 4, 31, 32, 33, 64, 65, 100, 254, 256, 258, 511, 513, 1024, 1025, 2049} {
			outputs, symbols, offset := 1+i%5, 1+5*i%37, []int{0, 1, 4, 8}[i%4]
			if inputs > 100 && f.Degree() > 1 { // a matrix of matrices
				continue
			}
			for _, shift := range []uint{0, 16, 32, 256, 260} { // coefficients -1/2^shift
				over := f.Inv(of(new(big.Int).Lsh(big.NewInt(1), shift)))
				c := f.Mul(minusOne, over)
				rows := make([][]field.Element, outputs)
				for i := range rows {
					for range inputs {
						rows[i] = append(rows[i], c)
					}
				}
				m := f.Map(rows)
				in, _ := packets(f, inputs, symbols, offset, &minusOne, 0)
				for _, add := range []bool{false, true} {
					out, _ := packets(f, outputs, symbols, offset, &minusOne, 0)
					want := f.Mul(over, of(big.NewInt(int64(inputs))))
					if add {
						want = f.Add(want, minusOne)
					}
					m.Apply(out, in, add)
					for i, p := range out {
						for k := range symbols {
							if got := field.Symbol(f, p[k*f.SymbolBytes():]); got != want {
								t.Fatalf("%s: %d outputs of %d inputs of %d symbols, coefficients -1/2^%d, add %v: output %d is %v at symbol %d, want %v", f.Name(), outputs, inputs, symbols, shift, add, i, got, k, want)
							}
						}
					}
				}
			}
		}
	})
}

// TestMapInvalid applies maps to packets of no elements: of all ones. Nothing but the
// outputs may change.
func TestMapInvalid(t *testing.T) {
	odd(t, func(t *testing.T, f field.Field) {
		for symbols := range 40 {
			for _, offset := range []int{0, 1, 8} {
				outputs, inputs := 1+symbols%7, 1+symbols%9
				rows := make([][]field.Element, outputs)
				for i := range rows {
					for j := range inputs {
						rows[i] = append(rows[i], field.Exp(f, f.Generator(), uint64(i*j)))
					}
				}
				in, inBuffer := packets(f, inputs, symbols, offset, nil, 0xff)
				out, outBuffer := packets(f, outputs, symbols, offset, nil, 0xff)
				f.Map(rows).Apply(out, in, symbols%2 == 0)
				for _, p := range out {
					copy(p, bytes.Repeat([]byte{0xff}, len(p)))
				}
				for _, buffer := range [][]byte{inBuffer, outBuffer} {
					if bytes.Count(buffer, []byte{0xff}) != len(buffer) {
						t.Fatalf("%s: %d symbols at offset %d: Apply wrote outside of the outputs", f.Name(), symbols, offset)
					}
				}
			}
		}
	})
}

// TestMapAllocates nothing.
func TestMapAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has pools forget")
	}
	odd(t, func(t *testing.T, f field.Field) {
		for _, shape := range []string{"1x1", "±", "8x8"} {
			rows := oddRows(f, shape, rand.New(rand.NewPCG(1, 2)))
			for offset := range 2 {
				in, _ := packets(f, len(rows[0]), 64, offset, &field.One, 0)
				out, _ := packets(f, len(rows), 64, offset, nil, 0)
				m := f.Map(rows)
				for _, add := range []bool{false, true} {
					if n := testing.AllocsPerRun(100, func() { m.Apply(out, in, add) }); n >= 1 {
						t.Errorf("%s: Apply of a map of %s allocates %v times, add %v", f.Name(), shape, n, add)
					}
				}
			}
		}
	})
}
