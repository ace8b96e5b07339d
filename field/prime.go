package field

import "math/bits"

// prime is F_q for an odd prime q < 2^31.
//
// Combine sums products in 64-bit words, of one symbol each or, where two lanes
// of 32 bits have room for enough products, of two. Eight bytes of a packet go
// to `words` words: word r takes the symbols under mask after a shift by r·shift
// bits.
type prime struct {
	common
	q       uint64
	inverse uint64 // ⌊2^64/q⌋
	lanes   lanes  // two of them
	paired  bool   // words hold two symbols
	words   int    // 2 or 4
	shift   uint
	mask    uint64
	limit   int // products that may be added to a reduced lane
}

// minPaired is the number of products that a lane must have room for.
const minPaired = 16

func newPrime(q uint64) *prime {
	f := &prime{
		common:  newCommon(primeName(q), Code(q), 1, Code(q), primitiveRoot(q)),
		q:       q,
		inverse: ^uint64(0) / q,
		lanes:   newLanes(q),
	}
	room := func(lane uint64) int { return int(min((lane-(q-1))/((q-1)*(q-1)), 1<<30)) }
	f.shift = 8 * uint(f.symbolBytes)
	f.mask = 1<<f.shift - 1
	f.words = 8 / f.symbolBytes
	f.limit = room(1<<64 - 1)
	if n := room(lowerLane); f.symbolBytes < 4 && n >= minPaired {
		f.paired, f.limit = true, n
		f.mask |= f.mask << 32
		f.words /= 2
	}
	f.block, f.row, f.simd = primeWords/f.words*8, f.sum, newPrimeLanes(f)
	return f
}

func (f *prime) Add(a, b Element) Element {
	s := a[0] + b[0]
	if s >= f.q {
		s -= f.q
	}
	return Code(s)
}

func (f *prime) Sub(a, b Element) Element {
	s := a[0] - b[0]
	if a[0] < b[0] {
		s += f.q
	}
	return Code(s)
}

func (f *prime) Mul(a, b Element) Element { return Code(reduce(a[0]*b[0], f.q, f.inverse)) }

func (f *prime) Inv(a Element) Element {
	f.checkInv(a)
	// Euclid's algorithm, with r = s·a modulo q throughout.
	r, s := int64(f.q), int64(0)
	rr, ss := int64(a[0]), int64(1)
	for rr != 0 {
		n := r / rr
		r, s, rr, ss = rr, ss, r-n*rr, s-n*ss
	}
	if s < 0 {
		s += int64(f.q)
	}
	return Code(uint64(s))
}

// reduce returns x modulo q, given ⌊2^64/q⌋. The quotient taken is at most one
// too small: x·⌊2^64/q⌋/2^64 > x/q - 1.
func reduce(x, q, inverse uint64) uint64 {
	n, _ := bits.Mul64(x, inverse)
	x -= n * q
	if x >= q {
		x -= q
	}
	return x
}

// reduceWords reduces every symbol in acc.
func (f *prime) reduceWords(acc []uint64) {
	if f.paired {
		f.lanes.reduceAll(acc)
		return
	}
	q, inverse := f.q, f.inverse
	for k, x := range acc {
		acc[k] = reduce(x, q, inverse)
	}
}

// primeWords is how many words of sums there are.
const primeWords = 512

// sum sets dst, a block, to Σ coef[j]·src[j][lo:hi], or adds that to dst.
func (f *prime) sum(dst []byte, coef []Element, src [][]byte, lo, hi int, add bool) {
	var sums [primeWords]uint64
	acc := sums[:(hi-lo+7)/8*f.words]
	room := f.limit
	mulAdd := func(c uint64, s []byte) {
		if room == 0 {
			f.reduceWords(acc)
			room = f.limit
		}
		room--
		if f.words == 2 {
			f.mulAdd2(acc, c, s)
		} else {
			f.mulAdd4(acc, c, s)
		}
	}
	if add {
		mulAdd(1, dst)
	}
	for j, s := range src {
		if c := coef[j][0]; c != 0 {
			mulAdd(c, s[lo:hi])
		}
	}
	f.store(dst, acc)
}

// mulAdd2 adds c·src to acc, two words to eight bytes.
func (f *prime) mulAdd2(acc []uint64, c uint64, src []byte) {
	shift, mask := f.shift&63, f.mask
	n := len(src) &^ 15
	for k := 0; k < n; k += 16 {
		s, a := src[k:k+16], acc[k/4:k/4+4]
		x, y := le.Uint64(s), le.Uint64(s[8:])
		a[0] += c * (x & mask)
		a[1] += c * (x >> shift & mask)
		a[2] += c * (y & mask)
		a[3] += c * (y >> shift & mask)
	}
	for k := n; k < len(src); k += 8 {
		x := load8(src[k:])
		acc[k/4] += c * (x & mask)
		acc[k/4+1] += c * (x >> shift & mask)
	}
}

// mulAdd4 adds c·src to acc, four words to eight bytes.
func (f *prime) mulAdd4(acc []uint64, c uint64, src []byte) {
	shift, mask := f.shift&63, f.mask
	for k := 0; k < len(src); k += 8 {
		x, a := load8(src[k:]), acc[k/2:k/2+4]
		a[0] += c * (x & mask)
		x >>= shift
		a[1] += c * (x & mask)
		x >>= shift
		a[2] += c * (x & mask)
		x >>= shift
		a[3] += c * (x & mask)
	}
}

// store sets dst to the symbols in acc.
func (f *prime) store(dst []byte, acc []uint64) {
	f.reduceWords(acc)
	shift := f.shift & 63
	for k := 0; k < len(dst); k += 8 {
		y := uint64(0)
		if f.words == 2 {
			y = acc[1]<<shift | acc[0]
		} else {
			y = ((acc[3]<<shift|acc[2])<<shift|acc[1])<<shift | acc[0]
		}
		acc = acc[f.words:]
		store8(dst[k:], y)
	}
}
