package field

// logarithms multiplies by tables of logarithms to the base of the generator.
// The fields of q = p^m <= 2^16 elements embed it.
type logarithms struct {
	small
	log []uint16 // of every element but zero
	exp []uint16 // of 0 … 2(q-2), so that a sum of two logarithms needs no reduction
}

// newLogarithms tabulates the powers of the generator of r. exp has two periods: a sum of two logarithms is an index of
// it. log[0] is not used.
func newLogarithms(name string, r *ring) logarithms {
	l := logarithms{small: newSmall(name, r.p, r.m, r.generator())}
	n := int(l.q - 1)
	l.log = make([]uint16, l.q)
	l.exp = make([]uint16, 2*n)
	g, a := vectorOf(l.generator, r.p), vector{1}
	for k := range n {
		code := a.code(r.p)
		l.log[code] = uint16(k)
		l.exp[k], l.exp[k+n] = uint16(code), uint16(code)
		a = r.mul(&a, &g)
	}
	return l
}

func (l *logarithms) Mul(a, b Element) Element { return Code(l.mul(a[0], b[0])) }

func (l *logarithms) mul(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return 0
	}
	return uint64(l.exp[int(l.log[a])+int(l.log[b])])
}

func (l *logarithms) Inv(a Element) Element {
	l.checkInv(a)
	return Code(uint64(l.exp[int(l.q-1)-int(l.log[a[0]])]))
}
