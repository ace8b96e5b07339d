package matrix

import (
	"math/big"

	"volley/field"
	"volley/internal/pointset"
)

// FTI returns the k×k matrix of symbol codes by which the Fault Tolerance
// Interface codes a checkpoint of level 3 over groups of K processes, on demand:
//
//	A[i][j] = 1/(j - (K+i))
//
// Over 2^w, where FTI is at home, that is 1/(j ⊕ (K+i)); its own field is 2^16.
// It is the transpose of [Cauchy]. It is an error where 2K > q.
func FTI(f field.Field, k int) (Matrix, error) {
	if err := pointset.CheckBoth("fti", f, k, k, 0); err != nil {
		return nil, err
	}
	x, y := pointset.Codes(f, k, k), pointset.Codes(f, 0, k)
	if f.Characteristic().Cmp(big.NewInt(2)) != 0 { // where -a is not a
		x, y = x.Negated(), y.Negated()
	}
	return named{cauchy{x, y}, "fti"}, nil
}
