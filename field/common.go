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
	name        string
	p, q        uint64
	m           int
	symbolBytes int
	generator   uint64
}

func newCommon(name string, p uint64, m int, generator uint64) common {
	q := uint64(1)
	for range m {
		q *= p
	}
	n := 1
	for q-1 >= 1<<(8*n) {
		n *= 2
	}
	return common{name, p, q, m, n, generator}
}

func (c *common) Name() string             { return c.name }
func (c *common) Order() *big.Int          { return new(big.Int).SetUint64(c.q) }
func (c *common) Characteristic() *big.Int { return new(big.Int).SetUint64(c.p) }
func (c *common) Degree() int              { return c.m }
func (c *common) SymbolBytes() int         { return c.symbolBytes }
func (c *common) Generator() Element       { return Code(c.generator) }

func (c *common) FirstInvalid(packet []byte) int {
	if c.q == 1<<(8*c.symbolBytes) {
		return -1
	}
	switch c.symbolBytes {
	case 1:
		for i, b := range packet {
			if uint64(b) >= c.q {
				return i
			}
		}
	case 2:
		for i := 0; i+2 <= len(packet); i += 2 {
			if uint64(le.Uint16(packet[i:])) >= c.q {
				return i / 2
			}
		}
	case 4:
		for i := 0; i+4 <= len(packet); i += 4 {
			if uint64(le.Uint32(packet[i:])) >= c.q {
				return i / 4
			}
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
