package main

import (
	"context"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"volley"
	"volley/examples/internal/elements"
	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/transport"
)

// A blob is the values of a polynomial P of degree below 4096, at the 4096-th
// roots of unity in bit-reversed order. The extended blob is its values at the
// 8192-nd roots, in 128 cells of 64, so value t of cell k is
//
//	P(w^rev13(64·k + t)) = P(h_k · z^rev6(t)), h_k = w^rev7(k), z = w^128,
//
// w of order 8192, rev13, rev7 and rev6 reversing as many bits. Cells 0 … 63 are
// the blob.
const (
	cellElements = 64
	processors   = 64             // a cell of the blob each
	cells        = 2 * processors // of the extended blob
	extended     = cells * cellElements
)

// A Cell is 64 field elements, big-endian, as in the consensus specs.
type Cell [cellElements * fr.Bytes]byte

// Extend runs as processor k of 64, the transport's rank, which holds cell k of one
// or more blobs. It returns cell 64+k of each. All 64 call it, with equally many
// blobs and equal options, volley.WithOrder not among them.
//
// On the coset h_k·<z> the polynomial X^64 is constant. So cell k is the values of
// the remainder of P modulo X^64 - h_k^64, which has 64 coefficients; and for
//
//	P(X) = Σ_j X^j·c_j(X^64), 0 <= j < 64,
//
// its coefficient j is c_j(h_k^64). An inverse FFT of the cell gives them all. Each
// c_j has degree below 64, and processor k has its value at h_k^64: from there on
// it is one Lagrange matrix for all j, from the 64 processors' h_k^64 to the
// h_(64+k)^64, and the 64 coefficients are processor k's packet.
func Extend(ctx context.Context, t transport.Transport, blobs []Cell, options ...volley.Option) ([]Cell, *volley.Report, error) {
	if t.Size() != processors {
		return nil, nil, fmt.Errorf("%d processors: want %d, one for each cell of a blob", t.Size(), processors)
	}
	a, err := ExtensionMatrix()
	if err != nil {
		return nil, nil, err
	}
	k := t.Rank()
	packet, err := coefficients(k, blobs)
	if err != nil {
		t.Abort(err) // or the others would wait
		return nil, nil, err
	}

	coded, report, err := volley.Encode(ctx, t, a, packet, options...)
	if err != nil {
		return nil, nil, err
	}

	result := make([]Cell, len(blobs))
	domain := fft.NewDomain(cellElements, fft.WithShift(representative(processors+k)))
	for b := range result {
		v := make([]fr.Element, cellElements)
		for i := range v {
			v[i], err = fr.LittleEndian.Element((*[fr.Bytes]byte)(coded[fr.Bytes*(b*cellElements+i):]))
			if err != nil {
				return nil, nil, err
			}
		}
		domain.FFT(v, fft.DIF, fft.OnCoset()) // DIF returns bit-reversed values
		result[b] = cellOf(v)
	}
	return result, report, nil
}

// coefficients returns the packet of processor k: for each blob, the coefficients
// of the remainder that its cell gives.
func coefficients(k int, blobs []Cell) ([]byte, error) {
	domain := fft.NewDomain(cellElements, fft.WithShift(representative(k)))
	var packet []byte
	for b := range blobs {
		v, err := blobs[b].values()
		if err != nil {
			return nil, fmt.Errorf("blob %d, cell %d: %w", b, k, err)
		}
		domain.FFTInverse(v, fft.DIT, fft.OnCoset()) // DIT takes bit-reversed values
		for i := range v {
			var symbol [fr.Bytes]byte
			fr.LittleEndian.PutElement(&symbol, v[i])
			packet = append(packet, symbol[:]...)
		}
	}
	return packet, nil
}

// ExtensionMatrix returns the Lagrange matrix from the 64th powers of the
// representatives of the blob's cells to those of the extension's.
func ExtensionMatrix() (matrix.Matrix, error) {
	f, err := field.Parse("bls12-381")
	if err != nil {
		return nil, err
	}
	var points [cells]field.Element
	for k := range points {
		h := representative(k)
		h.Exp(h, big.NewInt(cellElements))
		points[k] = h.Bits()
	}
	return elements.Lagrange(f, points[:processors], points[processors:])
}

// representative returns h_k, the first point of cell k.
func representative(k int) fr.Element { return point(k, 0) }

// point returns the point of value t of cell k.
func point(k, t int) fr.Element {
	w, err := fft.Generator(extended)
	if err != nil {
		panic(err) // the field has these roots
	}
	const width = 13 // 2^13 = extended
	exponent := bits.Reverse16(uint16(k*cellElements+t)) >> (16 - width)
	return *w.Exp(w, big.NewInt(int64(exponent)))
}

// values returns the elements of a cell, and an error where one is not below the
// order of the field.
func (c *Cell) values() ([]fr.Element, error) {
	v := make([]fr.Element, cellElements)
	for i := range v {
		var err error
		if v[i], err = fr.BigEndian.Element((*[fr.Bytes]byte)(c[fr.Bytes*i:])); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return v, nil
}

func cellOf(values []fr.Element) (c Cell) {
	for i, v := range values {
		fr.BigEndian.PutElement((*[fr.Bytes]byte)(c[fr.Bytes*i:]), v)
	}
	return c
}
