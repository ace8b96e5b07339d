package field

// lanes is arithmetic modulo p in the lanes of a 64-bit word, all at once.
type lanes struct {
	p       uint64
	width   uint   // bits of a lane
	inverse uint64 // ⌊2^width/p⌋
	even    uint64 // the bits of the even lanes
	odd     uint64 // the bits of the odd lanes
	tops    uint64 // the highest bit of every lane
	bias    uint64 // 2^(width-1) - p in every lane
}

// newLanes returns the arithmetic in n lanes, or n+1 if n is odd: the lanes are
// worked on in pairs. It needs 2p <= 2^width.
func newLanes(p uint64, n int) lanes {
	n += n % 2
	l := lanes{p: p, width: 64 / uint(n)}
	l.inverse = 1 << l.width / p
	ones := uint64(0)
	for i := range uint(n) {
		ones |= 1 << (i * l.width)
		if i%2 == 0 {
			l.even |= (1<<l.width - 1) << (i * l.width)
		}
	}
	l.odd = l.even << l.width
	l.tops = ones << (l.width - 1)
	l.bias = l.tops - p*ones
	return l
}

// max returns the largest value of a lane.
func (l *lanes) max() uint64 { return 1<<l.width - 1 }

// reduce reduces every lane. A product with the inverse takes two lanes, its
// quotient the upper one; that quotient is at most one too small.
func (l *lanes) reduce(x uint64) uint64 {
	w := l.width & 63
	even := (x & l.even) * l.inverse >> w & l.even
	odd := (x >> w & l.even) * l.inverse & l.odd
	return l.wrap(x - (even|odd)*l.p)
}

// wrap reduces every lane of a word of lanes below 2p.
func (l *lanes) wrap(x uint64) uint64 {
	return x - (x+l.bias)&l.tops>>((l.width-1)&63)*l.p
}
