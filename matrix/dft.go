package matrix

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/poll"
)

// DFT returns the k×k matrix of the discrete Fourier transform, on demand:
//
//	A[i][j] = ω^(ij), ω = g^((q-1)/K)
//
// K must divide q-1, for ω to have the order K; the error names divisors near K.
func DFT(f field.Field, k int) (Matrix, error) {
	if err := pointset.CheckSize("K", k); err != nil {
		return nil, err
	}
	units := pointset.UnitCount(f)
	exp, rem := new(big.Int).QuoRem(units, big.NewInt(int64(k)), new(big.Int))
	if rem.Sign() != 0 {
		return nil, fmt.Errorf("matrix: dft over %s: K = %d does not divide q-1 = %v: want %s", f.Name(), k, units, dftAdvice(f, k))
	}
	omega := field.ExpInt(f, f.Generator(), exp)
	return &dft{shape: shape{f, k, k}, omega: omega, powers: pointset.NewPowers(f, omega, k), scale: field.One, radices: pointset.PrimeFactors(k)}, nil
}

// DFTReversed returns the matrix of [DFT] with its columns in the order in which a butterfly leaves them:
//
//	A[i][j] = ω^(i·rev(j))
//
// where rev reverses the digits of j over the radices of K, as in [CosetPoints]: r returns those of a number, as for [Factor].
func DFTReversed(f field.Field, k int, r func(z int) []int) (Matrix, error) {
	m, err := DFT(f, k)
	if err != nil {
		return nil, err
	}
	d := m.(*dft)
	d.radices = pointset.Radices(r).Factors(k)
	return &reversedDFT{d, false}, nil
}

// A reversedDFT is a dft with reversed columns or, its inverse, rows.
type reversedDFT struct {
	*dft
	rows bool
}

func (m *reversedDFT) ID() string { return "dft-reversed" + pointset.Unusual(m.radices) }

func (m *reversedDFT) At(i, j int) field.Element {
	m.check(i, j)
	if m.rows {
		return m.dft.At(pointset.ReverseDigits(i, m.radices), j)
	}
	return m.dft.At(i, pointset.ReverseDigits(j, m.radices))
}

// A dft is the matrix of entries scale·ω^(ij).
type dft struct {
	shape
	omega  field.Element
	powers pointset.Powers // of omega
	scale  field.Element

	radices []int // of K, primes
}

func (m *dft) ID() string { return "dft" }

func (m *dft) At(i, j int) field.Element {
	m.check(i, j)
	e := m.powers.At(int(uint64(i) * uint64(j) % uint64(m.rows)))
	if m.scale == field.One {
		return e
	}
	return m.f.Mul(m.scale, e)
}

func (m *dft) Structure() Structure {
	return Structure{
		fixed: ofModule(m), nonzero: m.nonzero, factor: m.factor,
		inverse: func() Matrix { return m.backward() },
	}
}

func (m *reversedDFT) Structure() Structure {
	return Structure{
		Reversed: true, fixed: ofModule(m), nonzero: m.nonzero, factor: m.factor,
		inverse: func() Matrix { return &reversedDFT{m.dft.backward(), !m.rows} },
	}
}

func (m *dft) nonzero() bool { return true }

// backward returns the inverse: the matrix of entries ω^(-ij)/K, where m has no scale. Its ID is that of m.
func (m *dft) backward() *dft {
	// K divides q-1, so it is not zero in the field.
	k, err := field.FromInt(new(big.Int).Mod(big.NewInt(int64(m.rows)), m.f.Characteristic()))
	if err != nil {
		panic(err)
	}
	omega := m.f.Inv(m.omega)
	return &dft{shape: m.shape, omega: omega, powers: pointset.NewPowers(m.f, omega, m.rows), scale: m.f.Inv(m.f.Mul(k, m.scale)), radices: m.radices}
}

// dftAdvice names what would do in place of k: near divisors of q-1, and a small prime field with a DFT of size k.
func dftAdvice(f field.Field, k int) string {
	const steps = 1 << 16
	units := pointset.UnitCount(f)
	divides := func(d int) bool { return new(big.Int).Mod(units, big.NewInt(int64(d))).Sign() == 0 }
	var sizes, advice []string
	for d := k - 1; d >= 1 && d > k-steps; d-- {
		if divides(d) {
			sizes = append(sizes, fmt.Sprint(d))
			break
		}
	}
	for d := k + 1; d < k+steps && units.Cmp(big.NewInt(int64(d))) >= 0; d++ {
		if divides(d) {
			sizes = append(sizes, fmt.Sprint(d))
			break
		}
	}
	if len(sizes) > 0 {
		advice = append(advice, "K = "+strings.Join(sizes, " or "))
	}
	for p := int64(k) + 1; p <= pointset.MaxSize; p += int64(k) {
		if big.NewInt(p).ProbablyPrime(0) { // exact below 2^64
			advice = append(advice, fmt.Sprintf("a field such as %d", p))
			break
		}
	}
	if len(advice) == 0 {
		return "a divisor of q-1"
	}
	return strings.Join(advice, ", or ")
}

// factor returns the stages of a DFT, inputs in natural order, top digit first: label l obtains the value at ω^rev(l).
func (m *dft) factor(_ *poll.Poller, r pointset.Radices) *Factorisation {
	forward := m.radices
	if r != nil {
		forward = r(m.rows)
	}
	backward := slices.Clone(forward)
	slices.Reverse(backward)
	w := cosetTower(m.f, m.rows, forward, nil)
	degree := w.degrees()
	w.value = func(t, label int) field.Element {
		e := uint64(pointset.ReverseDigits(label, forward)) * uint64(degree[t])
		return m.powers.At(int(e % uint64(m.rows)))
	}
	fact := &Factorisation{
		Name: "dft", Structure: fmt.Sprintf("radices %s", pointset.Product(forward)), Layers: w.layers(), radices: forward,
		Output: Labels{
			func(k int) int { return pointset.ReverseDigits(k, backward) },
			func(l int) int { return pointset.ReverseDigits(l, forward) },
		},
	}
	for t := range fact.Layers {
		fact.Layers[t].Name = "stage"
	}
	if m.scale != field.One {
		scaleRows(fact.Layers, fact.Layers[0].K, func(int) field.Element { return m.scale })
	}
	return fact
}

// factor returns the factorisation of the dft in the order that its layers have.
func (m *reversedDFT) factor(p *poll.Poller, r pointset.Radices) *Factorisation {
	fact := m.dft.factor(p, r)
	if radices := m.radices; r == nil || slices.Equal(radices, r(m.dft.rows)) {
		fact.Output = Labels{}
	} else {
		output, backward := fact.Output, slices.Clone(radices)
		slices.Reverse(backward)
		fact.Output = Labels{
			func(k int) int { return output.Label(pointset.ReverseDigits(k, radices)) },
			func(l int) int { return pointset.ReverseDigits(output.Processor(l), backward) },
		}
	}
	if m.rows { // the transpose of what reversed columns give, as a DFT matrix is symmetric
		return fact.backwards(transposedLayers)
	}
	return fact
}
