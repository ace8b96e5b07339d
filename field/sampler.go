package field

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// Last returns the element of f with the largest symbol code, q-1.
func Last(f Field) Element {
	q := f.Order()
	last, err := FromInt(q.Sub(q, big.NewInt(1)))
	if err != nil {
		panic(err) // an element holds every code
	}
	return last
}

// Less reports whether the symbol code of e is below that of second.
func (e Element) Less(second Element) bool {
	for i := len(e) - 1; i > 0; i-- {
		if e[i] != second[i] {
			return e[i] < second[i]
		}
	}
	return e[0] < second[0]
}

// A Sampler draws uniformly random elements of a field.
type Sampler struct {
	f     Field
	last  Element // q-1
	words int     // of last
	mask  uint64  // of the last word
	bytes bool    // all bytes are symbols
}

// NewSampler returns a sampler for f.
func NewSampler(f Field) Sampler {
	s := Sampler{f: f, last: Last(f), words: 1, bytes: PackingOf(f).identity()}
	for w, limb := range s.last {
		if limb != 0 {
			s.words = w + 1
		}
	}
	s.mask = ^uint64(0) >> bits.LeadingZeros64(s.last[s.words-1])
	return s
}

// Draw returns the first number below q among those that it takes from the
// source of random words. A number takes as many words as q-1 has, least
// significant first, and keeps the low bits of the last, as many as q-1 has.
func (s *Sampler) Draw(source func() uint64) Element {
	for {
		var e Element
		for w := range s.words {
			e[w] = source()
		}
		e[s.words-1] &= s.mask
		if !s.last.Less(e) {
			return e
		}
	}
}

// Fill fills packet with uniformly random symbols, made of words of the source.
func (s *Sampler) Fill(packet []byte, source func() uint64) {
	if s.bytes {
		for len(packet) > 0 {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], source())
			packet = packet[copy(packet, word[:]):]
		}
		return
	}
	for i := 0; i < len(packet); i += s.f.SymbolBytes() {
		PutSymbol(s.f, packet[i:], s.Draw(source))
	}
}

// FillRandom is [Sampler.Fill] by a new sampler.
func FillRandom(f Field, packet []byte, source func() uint64) {
	s := NewSampler(f)
	s.Fill(packet, source)
}
