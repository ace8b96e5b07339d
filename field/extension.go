package field

import "sync"

// extension is F_{p^m}, p odd, m >= 2, q <= 2^16.
//
// Combine spreads the digits c_i of a symbol Σ c_i·p^i over the lanes of a word,
// so that adding words adds elements, up to a reduction of the lanes. Products
// with a coefficient come from tables of such words.
type extension struct {
	logarithms
	zech   []uint16 // log(1 + g^k) for k in [0, q-1), or noLog
	lanes  lanes
	spread []uint64 // of every symbol
	folds  []fold
	limit  int    // words that may be added to a reduced one
	base   *prime // F_p, where maps are faster by it

	rows [][256]uint64 // symbols of one byte: rows[c][x] = spread[c·x]

	// Symbols of two bytes are looked up in two parts, a + b·split.
	split      uint64 // p^⌈m/2⌉
	reciprocal uint64 // ⌈2^40/split⌉
}

// noLog stands for the logarithm of zero. The largest logarithm, q-2, is below.
const noLog = 1<<16 - 1

func newExtension(name string, r *ring) *extension {
	f := &extension{logarithms: newLogarithms(name, r), lanes: newLanes(r.p, r.m)}
	f.zech = make([]uint16, f.q-1)
	for k := range f.zech {
		a := uint64(f.exp[k]) + 1 // adding 1 touches only the lowest digit
		if a%f.p == 0 {
			a -= f.p
		}
		f.zech[k] = noLog
		if a != 0 {
			f.zech[k] = f.log[a]
		}
	}

	f.spread = make([]uint64, f.q)
	for c := range f.spread {
		v := vectorOf(uint64(c), f.p)
		for i := f.m - 1; i >= 0; i-- {
			f.spread[c] = f.spread[c]<<f.lanes.width | v[i]
		}
	}
	f.folds = newFolds(f.lanes, f.m)
	f.limit = int((f.lanes.max() - (f.p - 1)) / (f.p - 1))

	if base := newPrime(f.p); base.simd != nil && f.m <= maxDigits {
		f.base = base
	}
	if f.symbolBytes == 1 {
		f.rows = make([][256]uint64, f.q)
		for c := range f.q {
			for x := range f.q {
				f.rows[c][x] = f.spread[f.mul(c, x)]
			}
		}
		return f
	}
	f.split = pow(f.p, (f.m+1)/2)
	f.reciprocal = 1<<40/f.split + 1
	return f
}

func (f *extension) Add(a, b Element) Element { return Code(f.add(a[0], b[0])) }
func (f *extension) Sub(a, b Element) Element { return Code(f.add(a[0], f.minus(b[0]))) }

// add returns a + b = g^i + g^j = g^i·(1 + g^(j-i)), with Zech's logarithms of
// 1 + g^k.
func (f *extension) add(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return a | b
	}
	i := int(f.log[a])
	d := int(f.log[b]) - i
	if d < 0 {
		d += len(f.zech)
	}
	z := f.zech[d]
	if z == noLog {
		return 0
	}
	return uint64(f.exp[i+int(z)])
}

// minus returns -a. -1 is g^((q-1)/2).
func (f *extension) minus(a uint64) uint64 {
	if a == 0 {
		return 0
	}
	return uint64(f.exp[int(f.log[a])+len(f.zech)/2])
}

// A fold makes one lane of each pair of neighbours c, d: c + d·power. Done for
// pairs, then for pairs of pairs and so on, it makes digits a number.
type fold struct {
	mask  uint64
	shift uint
	power uint64
}

func newFolds(l lanes, m int) []fold {
	var folds []fold
	power := l.p
	for n := uint(1); n < uint(m); n *= 2 { // lanes that are one already
		mask := uint64(0)
		for at := uint(0); at < 64; at += 2 * n * l.width {
			mask |= (1<<(n*l.width) - 1) << at
		}
		folds = append(folds, fold{mask, n * l.width, power})
		power *= power
	}
	return folds
}

// extensionBlock is the number of symbols that Combine works on at a time.
const extensionBlock = 4096

type extensionScratch struct {
	acc [extensionBlock]uint64
	// The products of a coefficient with a and b·split, for a < split and
	// b < q/split. The sizes suffice for q <= 2^16; as powers of two they let a
	// mask keep symbols beyond q inside.
	lo [2048]uint64
	hi [256]uint64
}

var extensionPool = sync.Pool{New: func() any { return new(extensionScratch) }}

// minExtension is the number of two-byte symbols from which tables pay.
const minExtension = 128

func (f *extension) Map(rows [][]Element) Map {
	if shape := shapeOf(f, rows); f.digitsPay(shape) {
		return f.newDigitMap(shape, rows)
	}
	return newCombineMap(f, rows)
}

func (f *extension) Combine(dst []byte, coef []Element, src [][]byte) {
	f.checkCombine(dst, coef, src)
	words := f.symbolBytes // added for one source
	if words == 2 && len(dst) < 2*minExtension {
		f.combineShort(dst, coef, src)
		return
	}
	t := extensionPool.Get().(*extensionScratch)
	defer extensionPool.Put(t)
	block := extensionBlock * f.symbolBytes
	for lo := 0; lo < len(dst); lo += block {
		hi := min(lo+block, len(dst))
		acc := t.acc[:(hi-lo)/f.symbolBytes]
		clear(acc)
		room := f.limit
		for i, s := range src {
			c := coef[i][0]
			if c == 0 {
				continue
			}
			if room < words {
				f.lanes.reduceAll(acc)
				room = f.limit
			}
			room -= words
			if words == 1 {
				addRow(acc, &f.rows[c], s[lo:hi])
			} else {
				f.setTables(t, c)
				f.addTables(acc, t, s[lo:hi])
			}
		}
		f.store(dst[lo:hi], acc)
	}
}

// combineShort is Combine without any preparation.
func (f *extension) combineShort(dst []byte, coef []Element, src [][]byte) {
	for k := 0; k < len(dst); k += 2 {
		sum := uint64(0)
		for i, s := range src {
			if x := uint64(le.Uint16(s[k:])); x < f.q {
				sum = f.add(sum, f.mul(coef[i][0], x))
			}
		}
		le.PutUint16(dst[k:], uint16(sum))
	}
}

// addRow adds c·src to acc, row being that of c.
func addRow(acc []uint64, row *[256]uint64, src []byte) {
	acc = acc[:len(src)]
	for k, x := range src {
		acc[k] += row[x]
	}
}

// setTables fills the tables of t for the coefficient c.
func (f *extension) setTables(t *extensionScratch, c uint64) {
	l, p, power := f.lanes, int(f.p), uint64(1)
	for _, table := range [][]uint64{t.lo[:f.split], t.hi[:f.q/f.split]} {
		table[0] = 0
		for n := 1; n < len(table); n *= p { // with one more digit, 0 … p-1
			step := f.spread[f.mul(c, power)]
			for i := n; i < n*p; i++ {
				table[i] = l.wrap(table[i-n] + step)
			}
			power *= f.p
		}
	}
}

// addTables adds c·src to acc, t holding the tables of c.
func (f *extension) addTables(acc []uint64, t *extensionScratch, src []byte) {
	split, reciprocal := f.split, f.reciprocal
	n := len(acc) &^ 3
	for k := 0; k < n; k += 4 {
		s, a := src[2*k:2*k+8], acc[k:k+4]
		x := uint64(le.Uint16(s))
		y := uint64(le.Uint16(s[2:]))
		z := uint64(le.Uint16(s[4:]))
		w := uint64(le.Uint16(s[6:]))
		// The quotients are exact for symbols below 2^16 and split < 2^12.
		bx, by, bz, bw := x*reciprocal>>40, y*reciprocal>>40, z*reciprocal>>40, w*reciprocal>>40
		a[0] += t.lo[(x-bx*split)%2048] + t.hi[bx%256]
		a[1] += t.lo[(y-by*split)%2048] + t.hi[by%256]
		a[2] += t.lo[(z-bz*split)%2048] + t.hi[bz%256]
		a[3] += t.lo[(w-bw*split)%2048] + t.hi[bw%256]
	}
	for k := n; k < len(acc); k++ {
		x := uint64(le.Uint16(src[2*k:]))
		b := x * reciprocal >> 40
		acc[k] += t.lo[(x-b*split)%2048] + t.hi[b%256]
	}
}

// store sets dst to the symbols in acc. Pass by pass keeps the constants in
// registers.
func (f *extension) store(dst []byte, acc []uint64) {
	f.lanes.reduceAll(acc)
	for _, s := range f.folds {
		mask, shift, power := s.mask, s.shift&63, s.power
		for k, x := range acc {
			acc[k] = x&mask + x>>shift&mask*power
		}
	}
	if f.symbolBytes == 1 {
		dst = dst[:len(acc)]
		for k, x := range acc {
			dst[k] = byte(x)
		}
		return
	}
	for k, x := range acc {
		le.PutUint16(dst[2*k:], uint16(x))
	}
}
