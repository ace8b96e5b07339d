// Package code finds what is lost of packets x and of parity x·A by what is left: of nodes, of buffers in memory and of
// coded files.
package code

import (
	"context"
	"errors"
	"slices"

	"volley/field"
	"volley/internal/poll"
	"volley/matrix"
)

// Solve returns which parity packets it uses, the first that tell the lost packets, and the matrix D by which these are
// sums: it has a row for each of kept and then of used, and a column for each of lost. Where all the parity does not tell
// them, used are fewer than lost, and there is no D. Where the context ends the error is its cause.
func Solve(ctx context.Context, a matrix.Matrix, kept, lost, parity []int) (used []int, d matrix.Matrix, err error) {
	defer poll.Catch(&err)
	if n := len(lost); n == a.Rows() && n == a.Cols() && n == len(parity) && slices.IsSorted(lost) {
		if inverse, err := matrix.Inverse(ctx, a); !errors.Is(err, matrix.ErrSingular) { // it keeps its structure
			return slices.Sorted(slices.Values(parity)), inverse, err
		}
	}
	// With S the packets kept, L those lost, P the parity used: y_P = x_S·A_SP + x_L·A_LP, x_L = (y_P - x_S·A_SP)·A_LP^-1.
	f, steps := a.Field(), poll.New(ctx)
	chosen, decoding, err := matrix.DenseOf(part{a, lost, parity, steps}).Basis(ctx)
	poll.Must(err)
	for i, c := range chosen {
		chosen[i] = parity[c]
	}
	if decoding == nil {
		return chosen, nil, nil
	}
	known, err := matrix.Mul(part{a, kept, chosen, steps}, decoding)
	poll.Must(err)
	return chosen, matrix.DenseFunc(f, len(kept)+len(chosen), len(lost), func(i, j int) field.Element {
		if i < len(kept) {
			return f.Sub(field.Element{}, known.At(i, j))
		}
		return decoding.At(i-len(kept), j)
	}), nil
}

// A part is some rows and columns of a matrix. Every entry that is asked for is a step.
type part struct {
	matrix.Matrix
	rows, columns []int
	steps         *poll.Poller
}

func (p part) Rows() int { return len(p.rows) }
func (p part) Cols() int { return len(p.columns) }

func (p part) At(i, j int) field.Element {
	p.steps.Steps(1)
	return p.Matrix.At(p.rows[i], p.columns[j])
}
