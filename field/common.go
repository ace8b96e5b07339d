package field

import (
	"encoding/binary"
	"fmt"
	"math/big"
)

// le is the byte order of symbols.
var le = binary.LittleEndian

// common is what every field here knows about itself; the implementations
// embed it.
type common struct {
	name           string
	characteristic Element // p
	m              int
	order          Element // q; below 2^256, so that it fits
	symbolBytes    int
	generator      uint64

	row   rowFunc // what Combine and Map do to a block of so many bytes
	block int
	simd  *laneKernels // do it instead, unless nil
}

func newCommon(name string, p Element, m int, q Element, generator uint64) common {
	last := new(big.Int).Sub(q.Int(), big.NewInt(1))
	n := 1
	for last.BitLen() > 8*n {
		if n *= 2; n == 16 {
			n = 32
		}
	}
	return common{name: name, characteristic: p, m: m, order: q, symbolBytes: n, generator: generator}
}

func (c *common) Name() string             { return c.name }
func (c *common) Order() *big.Int          { return c.order.Int() }
func (c *common) Characteristic() *big.Int { return c.characteristic.Int() }
func (c *common) Degree() int              { return c.m }
func (c *common) SymbolBytes() int         { return c.symbolBytes }
func (c *common) Generator() Element       { return Code(c.generator) }
func (c *common) contains(e Element) bool  { return e.Less(c.order) }

func (c *common) FirstInvalid(packet []byte) int {
	n, q := c.symbolBytes, c.order[0]
	if c.order == Code(1<<(8*n)) {
		return -1
	}
	if n == 32 {
		for i := 0; i+32 <= len(packet); i += 32 {
			// The most significant word nearly always tells.
			if le.Uint64(packet[i+24:]) >= c.order[3] && !load32(packet[i:]).Less(c.order) {
				return i / 32
			}
		}
		return -1
	}
	for i := 0; i+n <= len(packet); i += n {
		invalid := false
		switch n {
		case 1:
			invalid = uint64(packet[i]) >= q
		case 2:
			invalid = uint64(le.Uint16(packet[i:])) >= q
		case 4:
			invalid = uint64(le.Uint32(packet[i:])) >= q
		case 8:
			invalid = le.Uint64(packet[i:]) >= q
		}
		if invalid {
			return i / n
		}
	}
	return -1
}

// checkCombine panics unless the arguments of Combine fit together.
func (c *common) checkCombine(dst []byte, coef []Element, src [][]byte) {
	if len(dst)%c.symbolBytes != 0 {
		panic(fmt.Sprintf("field %s: Combine: len(dst)=%d is no multiple of the %d bytes of a symbol", c.name, len(dst), c.symbolBytes))
	}
	if len(coef) != len(src) {
		panic(fmt.Sprintf("field %s: Combine: len(coef)=%d, len(src)=%d", c.name, len(coef), len(src)))
	}
	for i, s := range src {
		if len(s) != len(dst) {
			panic(fmt.Sprintf("field %s: Combine: len(src[%d])=%d, len(dst)=%d", c.name, i, len(s), len(dst)))
		}
	}
}

// checkInv panics when a has no inverse.
func (c *common) checkInv(a Element) {
	if a.IsZero() {
		panic(fmt.Sprintf("field %s: inverse of zero", c.name))
	}
}

// load8 returns the first 8 bytes of s, zeros standing in for missing ones.
func load8(s []byte) uint64 {
	if len(s) >= 8 {
		return le.Uint64(s)
	}
	var b [8]byte
	copy(b[:], s)
	return le.Uint64(b[:])
}

// store8 is the inverse of load8.
func store8(s []byte, x uint64) {
	if len(s) >= 8 {
		le.PutUint64(s, x)
		return
	}
	var b [8]byte
	le.PutUint64(b[:], x)
	copy(s, b[:])
}

// load32 returns the symbol in the first 32 bytes of s.
func load32(s []byte) Element {
	_ = s[31]
	return Element{le.Uint64(s), le.Uint64(s[8:]), le.Uint64(s[16:]), le.Uint64(s[24:])}
}

// store32 is the inverse of load32.
func store32(s []byte, e Element) {
	_ = s[31]
	le.PutUint64(s, e[0])
	le.PutUint64(s[8:], e[1])
	le.PutUint64(s[16:], e[2])
	le.PutUint64(s[24:], e[3])
}
