package bench

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/reedsolomon"

	"volley/bench/instructions"
	"volley/field"
	"volley/matrix"
	"volley/matrix/matrices"
)

// Bytes by a matrix without structure: every coded packet is a combination of all.
var denseCase = byteCase("dense", "a random matrix over bytes", matrices.Spec{Family: "random", Argument: "1"}, 4, 16, 32, 64, 128)

// Bytes by a matrix that is a product of layers. The peer multiplies by its entries.
var cauchyCase = byteCase("cauchy", "a Cauchy matrix over bytes", matrices.Spec{Family: "rs:cauchy"}, 32, 64, 128)

// byteCase is a case of bytes with the same matrix on both sides.
func byteCase(name, doc string, spec matrices.Spec, ks ...int) Case {
	return Case{
		Name: name, Doc: doc + "; klauspost/reedsolomon with the same matrix",
		Field: "2^8", Ks: ks, Size: 1 << 20, Unit: 1, Peer: "klauspost",
		mostK: 128, held: func(k int) int { return 3 * k },
		build: func(k int, size int64) (*workload, error) {
			a, err := build("2^8", spec, k)
			if err != nil {
				return nil, err
			}
			w := encode(a, randomPackets(a.Field(), k, size))
			rows := make([][]byte, k) // a row of theirs for a coded packet
			for j := range rows {
				for i := range k {
					rows[j] = append(rows[j], byte(a.At(i, j)[0]))
				}
			}
			parity, err := w.reedSolomon(w.inputs, reedsolomon.WithCustomMatrix(rows))
			if err != nil {
				return nil, err
			}
			w.wrong = func() int { return wrongByBytes(w.outputs, parity) }
			return w, nil
		},
	}
}

// As many parities as packets by additive FFTs. The matrices are not the same, so the
// result is compared with a direct sum.
var parityCase = Case{
	Name: "parity", Doc: "an additive FFT, matrix lch; klauspost/reedsolomon's Leopard, K parity shards of K",
	Field: "2^16", Ks: []int{256, 1024}, Size: 64 << 10, Unit: 64, Peer: "leopard",
	mostK: 4096, held: func(k int) int { return 3 * k },
	build: func(k int, size int64) (*workload, error) {
		a, err := build("2^16", matrices.Spec{Family: "lch"}, k)
		if err != nil {
			return nil, err
		}
		w := encode(a, randomPackets(a.Field(), k, size))
		_, err = w.reedSolomon(w.inputs, reedsolomon.WithLeopardGF16(true))
		return w, err
	},
}

// The very parity of Leopard, whose symbols are coordinates in a Cantor basis, and so are
// its points, parity first. Packets are taken to and fro outside of what is timed.
var leopardCase = Case{
	Name: "leopard", Doc: "the Lagrange matrix of Leopard's own code; klauspost/reedsolomon's Leopard on the same data",
	Field: "2^16:0x1002d", Ks: []int{256, 1024}, Size: 64 << 10, Unit: 64, Peer: "leopard",
	mostK: 4096, powers: true, held: func(k int) int { return 5 * k },
	build: func(k int, size int64) (*workload, error) {
		f, err := field.Parse("2^16:0x1002d")
		if err != nil {
			return nil, err
		}
		element := cantor(f, 16)
		points := func(first int) (matrix.Points, error) {
			list := make([]field.Element, k)
			for i := range list {
				list[i] = field.Code(uint64(element[first+i]))
			}
			return matrix.NewPoints(f, list)
		}
		omega, err := points(k)
		if err != nil {
			return nil, err
		}
		alpha, err := points(0)
		if err != nil {
			return nil, err
		}
		a, err := matrix.Lagrange(omega, alpha)
		if err != nil {
			return nil, err
		}
		data := randomPackets(f, k, size) // as Leopard has them
		inputs := sameShape(data)
		spread(k, func(i int) { fromLeopard(inputs[i], data[i], element) })
		w := encode(a, inputs)
		parity, err := w.reedSolomon(data, reedsolomon.WithLeopardGF16(true))
		if err != nil {
			return nil, err
		}
		w.wrong = func() int {
			wrong := make([]bool, k)
			spread(k, func(j int) {
				want := make([]byte, size)
				fromLeopard(want, parity[j], element)
				wrong[j] = !bytes.Equal(w.outputs[j], want)
			})
			return count(wrong)
		}
		return w, nil
	},
}

// reedSolomon makes klauspost/reedsolomon, with K parity shards of K, the peer and
// returns where its parity will be.
func (w *workload) reedSolomon(data [][]byte, option reedsolomon.Option) (parity [][]byte, err error) {
	k := len(data)
	options := []reedsolomon.Option{option}
	switch instructions.Current() { // for which it was initialized too early
	case instructions.AVX2:
		options = append(options, reedsolomon.WithAVX512(false))
		fallthrough
	case instructions.NoGFNI:
		options = append(options, reedsolomon.WithGFNI(false), reedsolomon.WithAVXGFNI(false))
	}
	encoder, err := reedsolomon.New(k, k, options...)
	if err != nil {
		return nil, fmt.Errorf("bench: klauspost/reedsolomon: %w", err)
	}
	parity = sameShape(data)
	shards := slices.Concat(data, parity)
	w.peer = func() error { return encoder.Encode(shards) }
	return parity, nil
}

// cantor returns the elements that symbols of Leopard stand for: sums of a basis
// β_0 = 1, β_i² + β_i = β_(i-1), of whose two roots it takes the even one.
func cantor(f field.Field, bits int) []uint16 {
	half := make(map[field.Element]uint64, 1<<bits/2)
	for z := uint64(0); z < 1<<bits; z += 2 {
		b := field.Code(z)
		half[f.Add(f.Mul(b, b), b)] = z
	}
	element := []uint16{0, 1}
	for b := uint64(1); len(element) < 1<<bits; {
		b = half[field.Code(b)]
		for _, e := range element {
			element = append(element, e^uint16(b))
		}
	}
	return element
}

// fromLeopard takes a packet from Leopard's layout, in which 64 bytes are the low bytes of
// 32 symbols and then the high ones, and its coordinates to ours.
func fromLeopard(dst, src []byte, element []uint16) {
	for start := 0; start < len(src); start += 64 {
		for i := range 32 {
			e := element[uint16(src[start+i])|uint16(src[start+32+i])<<8]
			dst[start+2*i], dst[start+2*i+1] = byte(e), byte(e>>8)
		}
	}
}
