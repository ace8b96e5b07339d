// Package elements turns field elements into packets, and back. It has the matrix that turns the values of a polynomial at
// some elements into those at others.
package elements

import (
	"volley/field"
	"volley/matrix"
)

// Lagrange returns the matrix that turns the values of a polynomial at some elements into those at others.
func Lagrange(f field.Field, source, target []field.Element) (matrix.Matrix, error) {
	omega, err := matrix.NewPoints(f, source)
	if err != nil {
		return nil, err
	}
	alpha, err := matrix.NewPoints(f, target)
	if err != nil {
		return nil, err
	}
	return matrix.Lagrange(omega, alpha)
}

// Pack returns the packet of symbols.
func Pack(f field.Field, symbols []field.Element) []byte {
	size := f.SymbolBytes()
	packet := make([]byte, len(symbols)*size)
	for i, e := range symbols {
		field.PutSymbol(f, packet[i*size:], e)
	}
	return packet
}

// Unpack returns the symbols of a packet.
func Unpack(f field.Field, packet []byte) []field.Element {
	size := f.SymbolBytes()
	symbols := make([]field.Element, len(packet)/size)
	for i := range symbols {
		symbols[i] = field.Symbol(f, packet[i*size:])
	}
	return symbols
}
