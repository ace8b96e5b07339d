package field

import (
	"fmt"
	"math/big"
	"slices"
)

// A Packing stores arbitrary bytes in the symbols of a field.
//
// Bytes are a stream of bits, bit 0 of byte 0 first. Each symbol takes the next
// [Packing.Bits] of them as a number, its first bit the lowest; the last symbol
// is filled up with zeros. Over 2^8 and 2^16, with whatever polynomial, this
// makes the bytes themselves the symbols.
type Packing struct {
	bits        int // of data in a symbol
	symbolBytes int
}

// PackingOf returns the packing for f: ⌊log2 q⌋ bits to a symbol, rounded down
// to whole bytes where q > 2^16.
func PackingOf(f Field) Packing {
	bits := f.Order().BitLen() - 1
	if bits > 16 {
		bits -= bits % 8
	}
	return Packing{bits, f.SymbolBytes()}
}

// Bits returns how many bits of data a symbol holds.
func (p Packing) Bits() int { return p.bits }

// Align returns the smallest n > 0 such that n bytes fill whole symbols: bytes
// may be packed in pieces, each but the last a multiple of n long, and give the
// same symbols as in one.
func (p Packing) Align() int64 { return int64(p.bits / gcd(p.bits, 8)) }

// Symbols returns how many symbols n bytes need.
func (p Packing) Symbols(n int64) int64 {
	bits, align := int64(p.bits), p.Align()
	return n/align*(8*align/bits) + (n%align*8+bits-1)/bits
}

// Bytes returns how many bytes fit into that many symbols: the largest n with
// Symbols(n) <= symbols.
func (p Packing) Bytes(symbols int64) int64 {
	bits, align := int64(p.bits), p.Align()
	group := 8 * align / bits
	return symbols/group*align + symbols%group*bits/8
}

// Pack sets dst to the symbols of src, and to zero after them. It panics when
// dst does not hold Symbols(len(src)) symbols, or holds a part of one.
func (p Packing) Pack(dst, src []byte) {
	p.check("Pack", dst, src)
	p.pack(dst, src, 0)
}

// Unpack sets dst to the first bytes in the symbols of src; it is the inverse of
// [Packing.Pack]. It panics when src does not hold Symbols(len(dst)) symbols, or
// holds a part of one. It returns an error when one of these symbols needs more
// than [Packing.Bits] bits, and has then written some of dst.
func (p Packing) Unpack(dst, src []byte) error {
	p.check("Unpack", src, dst)
	if p.identity() {
		copy(dst, src)
		return nil
	}
	if p.bits%8 == 0 {
		return p.unpackBytes(dst, src)
	}
	return p.unpackBits(dst, src)
}

// identity reports whether the bytes are the symbols.
func (p Packing) identity() bool { return p.bits == 8*p.symbolBytes }

func (p Packing) check(op string, symbols, data []byte) {
	if len(symbols)%p.symbolBytes != 0 {
		panic(fmt.Sprintf("field: %s: %d bytes of symbols are no multiple of the %d bytes of a symbol", op, len(symbols), p.symbolBytes))
	}
	if n := p.Symbols(int64(len(data))); int64(len(symbols)/p.symbolBytes) < n {
		panic(fmt.Sprintf("field: %s: %d symbols for %d bytes; want at least %d", op, len(symbols)/p.symbolBytes, len(data), n))
	}
}

// pack sets dst to the symbols of src without its first skip bits, 0 <= skip < 8,
// and to zero after them.
func (p Packing) pack(dst, src []byte, skip int) {
	size := p.symbolBytes
	switch {
	case p.identity():
		clear(dst[copy(dst, src):])
	case p.bits%8 == 0: // then skip = 0
		for ; len(dst) > 0; dst = dst[size:] {
			n := copy(dst[:p.bits/8], src)
			clear(dst[n:size])
			src = src[n:]
		}
	default: // at most 15 bits, which a word holds at any offset
		mask := uint64(1)<<p.bits - 1
		for at := skip; len(dst) > 0; at += p.bits {
			x := load8(src[min(at/8, len(src)):]) >> (at % 8) & mask
			dst[0] = byte(x)
			if size == 2 {
				dst[1] = byte(x >> 8)
			}
			dst = dst[size:]
		}
	}
}

func (p Packing) unpackBytes(dst, src []byte) error {
	n := p.bits / 8
	for k := 0; len(dst) > 0; k++ {
		s := src[k*p.symbolBytes:][:p.symbolBytes]
		for _, b := range s[n:] {
			if b != 0 {
				return p.overfull(k, s)
			}
		}
		dst = dst[copy(dst, s[:n]):]
	}
	return nil
}

func (p Packing) unpackBits(dst, src []byte) error {
	var word uint64 // the next bits of dst, lowest first
	have := 0       // how many
	for k := 0; len(dst) > 0; k++ {
		s := src[k*p.symbolBytes:][:p.symbolBytes]
		x := uint64(s[0])
		if p.symbolBytes == 2 {
			x |= uint64(s[1]) << 8
		}
		if x>>p.bits != 0 {
			return p.overfull(k, s)
		}
		word |= x << have
		have += p.bits
		for ; have >= 8 && len(dst) > 0; have -= 8 {
			dst[0] = byte(word)
			word >>= 8
			dst = dst[1:]
		}
	}
	return nil
}

// overfull is the error for the symbol s, the k-th.
func (p Packing) overfull(k int, s []byte) error {
	s = slices.Clone(s)
	slices.Reverse(s)
	return fmt.Errorf("field: symbol %d is %v, more than the %d bits of data it may hold", k, new(big.Int).SetBytes(s), p.bits)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
