package matrix

import (
	"fmt"
	"math/big"

	"volley/field"
)

// FTI returns the k×k matrix of symbol codes by which the Fault Tolerance
// Interface codes a checkpoint of level 3 over groups of K processes, on demand:
//
//	A[i][j] = 1/(j - (K+i))
//
// Over 2^w, where FTI is at home, that is 1/(j ⊕ (K+i)); its own field is 2^16.
// It is the transpose of [Cauchy]. It is an error where 2K > q.
func FTI(f field.Field, k int) (Matrix, error) {
	if err := checkCodes("fti", f, k, 2, 0); err != nil {
		return nil, err
	}
	x, y := Points(codePoints{f, k, k}), Points(codePoints{f, 0, k})
	if f.Characteristic().Cmp(big.NewInt(2)) != 0 { // where -a is not a
		x, y = negated{x}, negated{y}
	}
	return named{cauchy{x, y}, "fti"}, nil
}

// negated is points with their signs changed.
type negated struct{ Points }

func (n negated) ID() string { return "-" + n.Points.ID() }

func (n negated) At(k int) field.Element {
	return n.Field().Sub(field.Element{}, n.Points.At(k))
}

// checkCodes returns an error when f has fewer than sets·k + more elements, which
// a matrix of that name takes for its points.
func checkCodes(name string, f field.Field, k, sets, more int) error {
	if err := checkSize("K", k); err != nil {
		return err
	}
	need := int64(sets)*int64(k) + int64(more)
	largest := new(big.Int).Sub(f.Order(), big.NewInt(int64(more)))
	largest.Quo(largest, big.NewInt(int64(sets)))
	if largest.Cmp(big.NewInt(int64(k))) >= 0 {
		return nil
	}
	return fmt.Errorf("matrix: %s over %s: K = %d needs %d distinct points and q = %v: want K <= %v%s",
		name, f.Name(), k, need, f.Order(), largest, largerField(uint64(need)))
}
