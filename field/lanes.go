package field

// lanes is arithmetic modulo p in the lanes of a 64-bit word, all at once.
type lanes struct {
	p       uint64
	width   uint   // bits of a lane
	inverse uint64 // ⌊2^width/p⌋
	even    uint64 // the bits of the even lanes
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
	l.tops = ones << (l.width - 1)
	l.bias = l.tops - p*ones
	return l
}

// max returns the largest value of a lane.
func (l *lanes) max() uint64 { return 1<<l.width - 1 }

// reduceAll reduces every lane of every word. A product with the inverse takes
// two lanes, its quotient the upper one; that quotient is at most one too small.
func (l *lanes) reduceAll(words []uint64) {
	w, top := l.width&63, (l.width-1)&63
	p, inverse, even, tops, bias := l.p, l.inverse, l.even, l.tops, l.bias
	for k, x := range words {
		lower := (x & even) * inverse >> w & even
		upper := (x >> w & even) * inverse &^ even
		x -= (lower | upper) * p
		words[k] = x - (x+bias)&tops>>top*p // as wrap
	}
}

// wrap reduces every lane of a word of lanes below 2p.
func (l *lanes) wrap(x uint64) uint64 {
	return x - (x+l.bias)&l.tops>>((l.width-1)&63)*l.p
}
