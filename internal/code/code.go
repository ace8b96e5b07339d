// Package code finds what is lost of packets x and of parity x·A by what is left: of nodes, of buffers in memory and of
// coded files.
package code

import (
	"volley/field"
	"volley/matrix"
)

// Independent returns the first of the parity packets whose columns of A are a basis in the rows of lost packets.
func Independent(a matrix.Matrix, lost, parity []int) []int {
	_, pivots := part(a, lost, parity).Echelon()
	chosen := make([]int, len(pivots))
	for i, p := range pivots {
		chosen[i] = parity[p]
	}
	return chosen
}

// Solve returns the matrix D by which lost packets are sums of those kept and of as many parity packets as are lost: it
// has a row for each of kept and then of parity, and a column for each of lost. The error wraps matrix.ErrSingular where
// these do not tell the lost ones.
func Solve(a matrix.Matrix, kept, lost, parity []int) (*matrix.Dense, error) {
	// With S the packets kept, L those lost, P the parity: y_P = x_S·A_SP + x_L·A_LP, x_L = (y_P - x_S·A_SP)·A_LP^-1.
	back, err := part(a, lost, parity).Inverse()
	if err != nil {
		return nil, err
	}
	known, err := matrix.Mul(part(a, kept, parity), back)
	if err != nil {
		return nil, err
	}
	f := a.Field()
	return matrix.DenseFunc(f, len(kept)+len(parity), len(lost), func(i, j int) field.Element {
		if i < len(kept) {
			return f.Sub(field.Element{}, known.At(i, j))
		}
		return back.At(i-len(kept), j)
	}), nil
}

// part returns the entries of a in the given rows and columns.
func part(a matrix.Matrix, rows, columns []int) *matrix.Dense {
	return matrix.DenseFunc(a.Field(), len(rows), len(columns), func(i, j int) field.Element { return a.At(rows[i], columns[j]) })
}
