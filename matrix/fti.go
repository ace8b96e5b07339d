package matrix

import (
	"math/big"

	"volley/field"
)

var ftiFamily = Family{
	Name:    "fti",
	Formula: "A[i][j] = 1/(j - (K+i)), of symbol codes; over 2^w 1/(j ⊕ (K+i))",
	Doc:     "level 3 checkpoints of FTI; MDS; R = K, 2K <= q",
	Field:   "2^16",
	Square:  true,
	build:   func(b *builder) (Matrix, error) { return FTI(b.f, b.k) },
}

// FTI returns the k×k matrix of symbol codes by which the Fault Tolerance
// Interface codes a checkpoint of level 3 over groups of K processes, on demand:
//
//	A[i][j] = 1/(j - (K+i))
//
// Over 2^w, where FTI is at home, that is 1/(j ⊕ (K+i)); its own field is 2^16.
// It is the transpose of [Cauchy]. It is an error where 2K > q.
func FTI(f field.Field, k int) (Matrix, error) {
	if err := checkBoth("fti", f, k, k, 0); err != nil {
		return nil, err
	}
	x, y := codes(f, k, k), codes(f, 0, k)
	if f.Characteristic().Cmp(big.NewInt(2)) != 0 { // where -a is not a
		x, y = x.negated(), y.negated()
	}
	return named{cauchy{x, y}, "fti"}, nil
}

func (p *sequence) negated() *sequence {
	return &sequence{p.f, p.first, p.n, func(first, n int) string { return "-" + p.id(first, n) },
		func(k int) field.Element { return p.f.Sub(field.Element{}, p.at(k)) }}
}
