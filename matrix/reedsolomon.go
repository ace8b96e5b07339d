package matrix

import (
	"fmt"
	"math/big"

	"volley/field"
	"volley/internal/pointset"
)

// The matrices of Reed–Solomon libraries are k×r: they have the coefficients of r parity shards over k data shards.
// Coded packet j is parity shard j when initial packet i is data shard i. Over 2^8 they are those of
// klauspost/reedsolomon, entry by entry. The code is MDS when any k of the k+r shards determine all.

// ReedSolomonVandermonde returns the k×r matrix of klauspost/reedsolomon by default: the Vandermonde matrix of the
// codes 0 … k+r-1, multiplied to begin with the identity. The data are the values at the codes 0 … k-1 of a polynomial
// of degree below k, and the parity its values at the codes k … k+r-1 ([Lagrange]), on demand.
//
// The code is MDS. It is an error where k+r > q.
func ReedSolomonVandermonde(f field.Field, k, r int) (Matrix, error) {
	const id = "rs:vandermonde"
	if err := pointset.CheckBoth(id, f, k, r, 0); err != nil {
		return nil, err
	}
	return named{newLagrange(pointset.Codes(f, 0, k), pointset.Codes(f, k, r)), id}, nil
}

// ReedSolomonCauchy returns the k×r matrix of klauspost/reedsolomon's
// WithCauchyMatrix, and of ISA-L's gf_gen_cauchy1_matrix: [Cauchy] under another ID.
//
// The code is MDS. It is an error where k+r > q.
func ReedSolomonCauchy(f field.Field, k, r int) (Matrix, error) {
	m, err := Cauchy(f, k, r)
	if err != nil {
		return nil, err
	}
	return named{m, "rs:cauchy"}, nil
}

// ReedSolomonPAR1 returns the k×r matrix of PAR1, and of klauspost/reedsolomon's WithPAR1Matrix, on demand:
//
//	A[i][j] = (i+1)^j, i+1 a symbol code
//
// The square matrix is invertible, but from some k on the code is not MDS: there are k of the shards that do not
// determine the others. Over 2^w that is so from k = r = 4 on: as 1 ⊕ 2 ⊕ 3 = 0, parity shards 0, 1 and 3 do not
// determine data shards 0, 1 and 2. It is an error where k > q-1.
func ReedSolomonPAR1(f field.Field, k, r int) (Matrix, error) {
	const id = "rs:par1"
	if err := pointset.CheckShape(k, r); err != nil {
		return nil, err
	}
	if err := pointset.CheckElements(id, f, "K", int64(k), 1, false); err != nil {
		return nil, err
	}
	return named{Transpose(vandermonde{pointset.Codes(f, 1, k), r}), id}, nil
}

// ReedSolomonPAR2 returns the k×r matrix of PAR2's recovery blocks with the exponents 0 … r-1,
// which PAR2 has over 2^16 by the polynomial 0x1100b:
//
//	A[i][j] = g^(n_i·j), n_0 < n_1 < … the numbers from 1 on that are coprime to q-1
//
// The square matrix is invertible, but for large k there are k of the shards that do not
// determine the others, as with [ReedSolomonPAR1]. It is an error where fewer than k
// numbers below q are coprime to q-1. Source: Parity Volume Set Specification 2.0.
func ReedSolomonPAR2(f field.Field, k, r int) (Matrix, error) {
	const id = "rs:par2"
	if err := pointset.CheckShape(k, r); err != nil {
		return nil, err
	}
	var points []field.Element
	units, unit := pointset.UnitCount(f), big.NewInt(1)
	for n := big.NewInt(1); len(points) < k; n.Add(n, unit) {
		if n.Cmp(units) > 0 {
			return nil, fmt.Errorf("matrix: %s over %s: K = %d needs %[3]d numbers that are coprime to %v: want K <= %d, or a larger field",
				id, f.Name(), k, units, len(points))
		}
		if new(big.Int).GCD(nil, nil, n, units).Cmp(unit) == 0 {
			points = append(points, field.Exp(f, f.Generator(), n.Uint64()))
		}
	}
	alpha, err := NewPoints(f, points)
	if err != nil {
		return nil, err
	}
	return named{Transpose(vandermonde{alpha, r}), id}, nil
}

// ReedSolomonJerasure returns the k×r matrix of Jerasure's reed_sol_vandermonde_coding_matrix, and of
// klauspost/reedsolomon's WithJerasureMatrix, on demand. It is that of a code of polynomial values at the codes 0 …
// k+r-2 and of the leading coefficient, with shards multiplied such that row 0 and column 0 are ones:
//
//	A[i][j] = (k-i)·(k+j) / (k·(k+j-i)), 0 <= j < r-1
//	A[i][r-1] = (k-i) / k
//
// for symbol codes i, k and k+j, and r > 1. The code is MDS. It is an error where k+r-1 > q.
func ReedSolomonJerasure(f field.Field, k, r int) (Matrix, error) {
	const id = "rs:jerasure"
	if err := pointset.CheckBoth(id, f, k, r, -1); err != nil {
		return nil, err
	}
	return &formula{shape{f, k, r}, id, func(i, j int) field.Element {
		if i == 0 || j == 0 {
			return field.One
		}
		// Elimination makes it the Lagrange matrix Φ_i(y_j), with the leading coefficient of Φ_i in the last column.
		// Rows are divided by column 0, then columns by row 0, and of Φ_i(y) = w_i·Π(y - x_m) / (y - x_i) these remain.
		x, first, y := field.Code(uint64(i)), field.Code(uint64(k)), field.Code(uint64(k)+uint64(j))
		numerator, denominator := f.Sub(first, x), first
		if j < r-1 {
			numerator = f.Mul(numerator, y)
			denominator = f.Mul(denominator, f.Sub(y, x))
		}
		return f.Mul(numerator, f.Inv(denominator))
	}, true}, nil
}
