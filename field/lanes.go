package field

// lanes is arithmetic modulo p < 2^31 in the two lanes of a 64-bit word, both at once.
type lanes struct {
	p       uint64
	inverse uint64 // ⌊2^32/p⌋
	bias    uint64 // 2^31 - p in every lane
}

const (
	lowerLane = 1<<32 - 1
	bothOnes  = 1<<32 | 1
	bothTops  = bothOnes << 31 // the highest bits
)

func newLanes(p uint64) lanes { return lanes{p, 1 << 32 / p, bothTops - p*bothOnes} }

// reduceAll reduces both lanes of every word. The quotient by the inverse is at most one too
// small.
func (l *lanes) reduceAll(words []uint64) {
	p, inverse, bias := l.p, l.inverse, l.bias
	for k, x := range words {
		lower := (x & lowerLane) * inverse >> 32
		upper := (x >> 32) * inverse &^ lowerLane
		x -= (lower | upper) * p
		words[k] = x - (x+bias)&bothTops>>31*p
	}
}
