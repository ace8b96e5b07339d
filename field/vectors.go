package field

// Vectors are operations of gnark-crypto on vectors of its elements E, which hold x
// in Montgomery form: as limbs x·R mod q, of which it multiplies a and b to a·b/R.
// The limbs of a code, used as they are, times a Montgomery form make a code; so
// only coefficients are taken into that form, and packets are vectors of codes.
//
// They are functions with types, not methods of a type parameter: of those the
// compiler does not know that they keep no pointers, and allocates the slices.
type Vectors[E any] struct {
	Add, Sub func(z, x, y []E)    // z may be x or y
	Scale    func(z, x []E, c *E) // z = c·x, with c in Montgomery form
}

// vectorSymbols is how many symbols of a packet vectors work on at a time.
const vectorSymbols = 128

// vectorScratch is for one row.
type vectorScratch[E any] struct {
	product, x, z [vectorSymbols]E
	c             E // a coefficient in Montgomery form
}

// vectorRow is a rowFunc by vectors.
func (f *scalars[E, PE]) vectorRow(dst []byte, coef []Element, src [][]byte, lo, hi int, add bool) {
	t := f.scratch.Get().(*vectorScratch[E])
	defer f.scratch.Put(t)
	z, viewed := view[E](dst)
	if !viewed {
		z = t.z[:len(dst)/f.symbolBytes]
		if add {
			loadScalars(z, dst)
		}
	}
	var sum []E // so far: nil for zero, z, or an input itself
	if add {
		sum = z
	}
	for j, c := range coef {
		isOne := c == One
		if !isOne && c.IsZero() {
			continue
		}
		x, ok := view[E](src[j][lo:hi])
		if !ok {
			x = t.x[:len(z)]
			if sum == nil && isOne {
				x = z // where it stays
			}
			loadScalars(x, src[j][lo:hi])
		}
		switch {
		case isOne && sum == nil:
			sum = x
			continue
		case isOne:
			f.vectors.Add(z, sum, x)
		case c == f.minusOne && sum != nil:
			f.vectors.Sub(z, sum, x)
		case sum == nil:
			t.c = f.montgomery(c)
			f.vectors.Scale(z, x, &t.c)
		default:
			t.c = f.montgomery(c)
			f.vectors.Scale(t.product[:len(z)], x, &t.c)
			f.vectors.Add(z, sum, t.product[:len(z)])
		}
		sum = z
	}
	switch {
	case sum == nil:
		clear(z)
	case len(z) > 0 && &sum[0] != &z[0]:
		copy(z, sum)
	}
	if !viewed {
		storeScalars(dst, z)
	}
}

// unitary reports whether rows have no coefficients but 0, 1 and -1.
func (f *scalars[E, PE]) unitary(rows [][]Element) bool {
	for _, row := range rows {
		for _, c := range row {
			if c != f.minusOne && c != One && !c.IsZero() {
				return false
			}
		}
	}
	return true
}

// layerMap is one of the maps that transforms are made of: c·x, or x+c·y and x-c·y with one product. It does at once
// what a row does step by step, which takes as long as the arithmetic where packets are short.
type layerMap[E any] struct {
	*rowMap // does all else
	vectors *Vectors[E]
	c       E   // of c·x, in Montgomery form
	x       int // which input x is, of two
	product Map // c·y; nil where that is y
}

func (m *layerMap[E]) Apply(outputs, inputs [][]byte, add bool) {
	m.check(outputs, inputs, m.symbolBytes)
	var x, z [2][]E
	views := !add
	for k := range outputs {
		var inputViewed, outputViewed bool
		x[k], inputViewed = view[E](inputs[k])
		z[k], outputViewed = view[E](outputs[k])
		views = views && inputViewed && outputViewed
	}
	switch {
	case !views:
		m.rowMap.Apply(outputs, inputs, add)
	case len(outputs) == 1:
		m.vectors.Scale(z[0], x[0], &m.c)
	default:
		y := x[1-m.x]
		if m.product != nil {
			m.product.Apply(outputs[1:], inputs[1-m.x:][:1], false)
			y = z[1]
		}
		m.vectors.Add(z[0], x[m.x], y)
		m.vectors.Sub(z[1], x[m.x], y)
	}
}
