package bench

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/matrix/matrices"
)

// A transform of K elements for each symbol of a packet. Both sides leave the results
// in reversed order, and both take codes for Montgomery forms, which is right since
// transforms are linear.
var dftCase = Case{
	Name: "dft", Doc: "a DFT in reversed order; gnark-crypto's FFT of each symbol, with transposes",
	Field: "bls12-381", Ks: []int{1024}, Size: 64 * fr.Bytes, Unit: fr.Bytes, Peer: "gnark",
	mostK: 1 << 16, powers: true, held: func(k int) int { return 3 * k },
	build: func(k int, size int64) (*workload, error) {
		a, err := build("bls12-381", matrices.Spec{Family: "dft", Order: "reversed"}, k)
		if err != nil {
			return nil, err
		}
		w := encode(a, randomPackets(a.Field(), k, size))
		domain := fft.NewDomain(uint64(k))
		place, err := places(a, field.Element(domain.Generator.Bits()))
		if err != nil {
			return nil, err
		}
		results := sameShape(w.inputs)
		w.peer = func() error {
			transforms(domain, results, w.inputs)
			return nil
		}
		want := make([][]byte, k)
		for j := range want {
			want[j] = results[place[j]]
		}
		w.wrong = func() int { return wrongByBytes(w.outputs, want) }
		return w, nil
	},
}

// places returns which of gnark's results, for its root of unity, each column of the
// DFT in reversed order is: ω = root^e may be another root of the same order.
func places(a matrix.Matrix, root field.Element) ([]int, error) {
	f, k := a.Field(), a.Rows()
	omega := a.At(1, k/2) // the place of column 1, reversed
	e, power := 1, root
	for power != omega {
		power = f.Mul(power, root)
		if e++; e > k {
			return nil, errors.New("bench: ω is no power of gnark-crypto's root of unity")
		}
	}
	reverse := func(i int) int { return int(bits.Reverse64(uint64(i)) >> (64 - bits.Len(uint(k-1)))) }
	list := make([]int, k)
	for j := range list {
		list[j] = reverse(reverse(j) * e % k)
	}
	return list, nil
}

// transforms transforms symbol by symbol what lies in packets, on a goroutine for each
// core. Each takes a row of neighbouring symbols at a time, so that it reads and writes
// lines of the cache whole.
func transforms(domain *fft.Domain, outputs, inputs [][]byte) {
	const row = 4
	k, symbols := len(inputs), len(inputs[0])/fr.Bytes
	rows := (symbols + row - 1) / row
	workers := min(rows, runtime.GOMAXPROCS(0))
	spread(workers, func(worker int) {
		var vectors [row][]fr.Element
		for i := range vectors {
			vectors[i] = make([]fr.Element, k)
		}
		for r := worker; r < rows; r += workers {
			begin, end := r*row, min((r+1)*row, symbols)
			for i, packet := range inputs {
				for s := begin; s < end; s++ {
					x := &vectors[s-begin][i]
					for l := range x {
						x[l] = binary.LittleEndian.Uint64(packet[s*fr.Bytes+8*l:])
					}
				}
			}
			for s := begin; s < end; s++ {
				domain.FFT(vectors[s-begin], fft.DIF, fft.WithNbTasks(1))
			}
			for i, packet := range outputs {
				for s := begin; s < end; s++ {
					for l, limb := range vectors[s-begin][i] {
						binary.LittleEndian.PutUint64(packet[s*fr.Bytes+8*l:], limb)
					}
				}
			}
		}
	})
}
