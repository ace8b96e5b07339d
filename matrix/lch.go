package matrix

import (
	"fmt"
	"math/bits"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// LCH returns the k×r matrix of the additive FFT of Lin, Chung and Han (FOCS 2014)
// on the symbol codes 0 … r-1, on demand. With k = M·2^h, M odd, s_t the
// polynomial that vanishes on the codes below 2^t, and l = l_0 + 2·l_1 + … + 2^h·w,
//
//	A[l][j] = s_h(j)^w · Π_t (s_t(j)/s_t(2^t))^(l_t), t = 0 … h-1
//
// so that the initial packets are the coefficients of a polynomial in a basis of one polynomial of each degree, and the
// coded packets its values. The field has characteristic 2; it is an error where it has not, or where k or r > q.
func LCH(f field.Field, k, r int) (Matrix, error) {
	if !f.Characteristic().IsUint64() || f.Characteristic().Uint64() != 2 {
		return nil, fmt.Errorf("matrix: lch over %s: the additive FFT needs characteristic 2: want a field such as 2^8 or 2^16", f.Name())
	}
	if err := pointset.CheckShape(k, r); err != nil {
		return nil, err
	}
	letter, count := "K", k
	if r > k {
		letter, count = "R", r
	}
	if err := pointset.CheckElements("lch", f, letter, int64(count), 0, false); err != nil {
		return nil, err
	}
	m := &lch{shape: shape{f, k, r}}
	m.tower = &tower{f: f, n: k}
	var maps []field.Element // s_(t+1)(z) = s_t(z)·(s_t(z) + s_t(2^t))
	for t := range bits.TrailingZeros(uint(k)) {
		c := m.tower.eval(field.Code(1 << t))
		maps = append(maps, c)
		m.norm = append(m.norm, f.Inv(c))
		m.tower.folds = append(m.tower.folds, fold{f: f, radix: 2, linear: c})
	}
	m.tower.value = func(t, label int) field.Element {
		z := field.Code(uint64(label))
		for _, c := range maps[:t] {
			z = f.Mul(z, f.Add(z, c))
		}
		return z
	}
	return m, nil
}

type lch struct {
	shape
	tower *tower          // of K points
	norm  []field.Element // 1/s_t(2^t)
}

func (m *lch) ID() string { return "lch" }

func (m *lch) At(l, j int) field.Element {
	m.check(l, j)
	h := len(m.norm)
	v := field.One
	for t := range h {
		if l>>t&1 == 1 {
			v = m.f.Mul(v, m.f.Mul(m.norm[t], m.tower.value(t, j)))
		}
	}
	return m.f.Mul(v, field.Exp(m.f, m.tower.value(h, j), uint64(l>>h)))
}

func (m *lch) Structure() Structure { // values of one polynomial of each degree
	return Structure{invertible: true, fixed: ofModule(m), split: m.split, factor: m.factor}
}

// factor returns the layers of the additive FFT, whose basis is that of the tower.
func (m *lch) factor(*poll.Poller, pointset.Radices) *Factorisation {
	if !m.tower.structured() {
		return nil
	}
	return &Factorisation{Name: "additive-fft", Structure: m.tower.String(), Layers: m.tower.layers(), radices: m.tower.radices()}
}
