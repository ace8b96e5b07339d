// Package elements turns field elements into packets, and back.
package elements

import "volley/field"

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
