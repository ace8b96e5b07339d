package field

// extension is F_{p^m}, p odd, m >= 2, q <= 2^16. It adds and multiplies by logarithms, symbol
// by symbol: no code in use has such a field.
type extension struct {
	logarithms
	zech []uint16 // log(1 + g^k) for k in [0, q-1), or noLog
}

// noLog stands for the logarithm of zero. The largest logarithm, q-2, is below.
const noLog = 1<<16 - 1

func newExtension(name string, r *ring) *extension {
	f := &extension{logarithms: newLogarithms(name, r)}
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
	f.block, f.row = blockBytes, f.addRow
	return f
}

func (f *extension) Add(a, b Element) Element { return Code(f.add(a[0], b[0])) }
func (f *extension) Sub(a, b Element) Element { return Code(f.add(a[0], f.minus(b[0]))) }

func (f *extension) add(a, b uint64) uint64 {
	if b == 0 {
		return a
	}
	return f.addPower(a, int(f.log[b]))
}

// addPower returns a + g^j = g^i·(1 + g^(j-i)) for 0 <= j <= 2(q-2), with Zech's logarithms of
// 1 + g^k.
func (f *extension) addPower(a uint64, j int) uint64 {
	if a == 0 {
		return uint64(f.exp[j])
	}
	i := int(f.log[a])
	d := j - i
	if d < 0 {
		d += len(f.zech)
	} else if d >= len(f.zech) {
		d -= len(f.zech)
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

// addRow takes codes that are no element for zero.
func (f *extension) addRow(dst []byte, coef []Element, src [][]byte, lo, _ int, add bool) {
	if !add {
		clear(dst)
	}
	for k := 0; k < len(dst); k += f.symbolBytes {
		sum := Symbol(f, dst[k:])[0]
		for j, s := range src {
			if c, x := coef[j][0], Symbol(f, s[lo+k:])[0]; c != 0 && x != 0 && x < f.q {
				sum = f.addPower(sum, int(f.log[c])+int(f.log[x]))
			}
		}
		PutSymbol(f, dst[k:], Code(sum))
	}
}
