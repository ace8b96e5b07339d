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
// holds a part of one. It returns an [*OverfullError] when one of these symbols needs
// more than [Packing.Bits] bits, and has then written some of dst.
func (p Packing) Unpack(dst, src []byte) error {
	p.check("Unpack", src, dst)
	switch {
	case p.identity():
		copy(dst, src)
		return nil
	case p.small():
		return p.unpackSmall(dst, src)
	default:
		return p.unpackLarge(dst, src)
	}
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

// small reports whether a symbol and the bits before it in its first byte fit
// into a word.
func (p Packing) small() bool { return p.bits <= 32 }

// pack sets dst to the symbols of src without its first skip bits, 0 <= skip < 8,
// and to zero after them.
func (p Packing) pack(dst, src []byte, skip int) {
	switch {
	case p.identity():
		clear(dst[copy(dst, src):])
	case p.small():
		p.packSmall(dst, src, skip)
	default: // whole bytes, so skip = 0
		for ; len(dst) > 0; dst = dst[p.symbolBytes:] {
			n := copy(dst[:p.bits/8], src)
			clear(dst[n:p.symbolBytes])
			src = src[n:]
		}
	}
}

func (p Packing) packSmall(dst, src []byte, skip int) {
	mask := uint64(1)<<p.bits - 1
	position, bits := uint(skip), uint(p.bits)
	next := func() uint64 {
		x := uint64(0)
		if k := position / 8; k+8 <= uint(len(src)) {
			x = le.Uint64(src[k:])
		} else if k < uint(len(src)) {
			x = load8(src[k:])
		}
		x = x >> (position % 8) & mask
		position += bits
		return x
	}
	switch p.symbolBytes {
	case 1:
		for k := range dst {
			dst[k] = byte(next())
		}
	case 2:
		for ; len(dst) >= 2; dst = dst[2:] {
			le.PutUint16(dst, uint16(next()))
		}
	case 4:
		for ; len(dst) >= 4; dst = dst[4:] {
			le.PutUint32(dst, uint32(next()))
		}
	}
}

func (p Packing) unpackSmall(dst, src []byte) error {
	var word uint64     // the next bits of dst, lowest first
	buffered := uint(0) // how many, below 32
	size, bits := p.symbolBytes, uint(p.bits)
	for k := 0; len(dst) > 0; k += size {
		x := uint64(0)
		switch size {
		case 1:
			x = uint64(src[k])
		case 2:
			x = uint64(le.Uint16(src[k:]))
		case 4:
			x = uint64(le.Uint32(src[k:]))
		}
		if x>>bits != 0 {
			return p.overfull(k/size, src[k:k+size])
		}
		word |= x << buffered
		buffered += bits
		if buffered >= 32 && len(dst) >= 4 {
			le.PutUint32(dst, uint32(word))
			dst, word, buffered = dst[4:], word>>32, buffered-32
		}
		if buffered >= 8*uint(len(dst)) { // the last bytes are there
			for i := range dst {
				dst[i] = byte(word >> (8 * i))
			}
			return nil
		}
	}
	return nil
}

func (p Packing) unpackLarge(dst, src []byte) error {
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

// An OverfullError says that a packed symbol holds more than the bits of data that
// [Packing.Pack] puts there.
type OverfullError struct {
	Symbol int64 // which one, from 0
	Value  *big.Int
	Bits   int // that it may hold
}

func (e *OverfullError) Error() string {
	return fmt.Sprintf("field: symbol %d is %v, more than the %d bits of data it may hold", e.Symbol, e.Value, e.Bits)
}

// overfull is the error for the symbol s, the k-th.
func (p Packing) overfull(k int, s []byte) error {
	s = slices.Clone(s)
	slices.Reverse(s)
	return &OverfullError{int64(k), new(big.Int).SetBytes(s), p.bits}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
