package matrix

import "volley/field"

// The matrices of Reed–Solomon libraries have the coefficients of K parity shards
// over K data shards: the coded packet of processor j is parity shard j when the
// initial packet of processor i is data shard i. Over 2^8 they are those of
// klauspost/reedsolomon, entry by entry, and [Cauchy] is that of its
// WithCauchyMatrix. The code is MDS when any K of the 2K shards determine all.

// ReedSolomonVandermonde returns the matrix of klauspost/reedsolomon by default:
// the Vandermonde matrix of codes 0 … 2K-1, multiplied to begin with the
// identity. The data are the values at codes 0 … K-1 of a polynomial of degree
// below K, and the parity its values at codes K … 2K-1 ([Lagrange]), on demand.
//
// The code is MDS. It is an error where 2K > q.
func ReedSolomonVandermonde(f field.Field, k int) (Matrix, error) {
	return reedSolomonVandermonde(f, k, k)
}

// reedSolomonVandermonde is that of R parity shards, at codes K … K+R-1.
func reedSolomonVandermonde(f field.Field, k, r int) (Matrix, error) {
	const id = "rs:vandermonde"
	if err := checkBoth(id, f, k, r, 0); err != nil {
		return nil, err
	}
	return named{newLagrange(codePoints{f, 0, k}, codePoints{f, k, r}), id}, nil
}

// ReedSolomonPAR1 returns the matrix of PAR1, and of klauspost/reedsolomon's
// WithPAR1Matrix, on demand:
//
//	A[i][j] = (i+1)^j, i+1 a symbol code
//
// It is invertible, but from some K on the code is not MDS: there are K of the 2K
// shards that do not determine the others. Over 2^w that is so from K = 4 on: as
// 1 ⊕ 2 ⊕ 3 = 0, parity shards 0, 1 and 3 do not determine data shards 0, 1 and 2.
// It is an error where K > q-1.
func ReedSolomonPAR1(f field.Field, k int) (Matrix, error) {
	return reedSolomonPAR1(f, k, k)
}

// reedSolomonPAR1 is that of R parity shards, j < R.
func reedSolomonPAR1(f field.Field, k, r int) (Matrix, error) {
	const id = "rs:par1"
	if err := checkCodes(id, f, "K", k, 1); err != nil {
		return nil, err
	}
	return named{Transpose(vandermonde{codePoints{f, 1, k}, r}), id}, nil
}

// ReedSolomonJerasure returns the matrix of Jerasure's
// reed_sol_vandermonde_coding_matrix, and of klauspost/reedsolomon's
// WithJerasureMatrix, on demand. It is that of a code of polynomial values at
// codes 0 … 2K-2 and of the leading coefficient, with shards multiplied such that
// row 0 and column 0 are ones:
//
//	A[i][j] = (K-i)·(K+j) / (K·(K+j-i)), 0 <= j < K-1
//	A[i][K-1] = (K-i) / K
//
// for symbol codes i, K and K+j, and K > 1. The code is MDS. It is an error where
// 2K-1 > q.
func ReedSolomonJerasure(f field.Field, k int) (Matrix, error) {
	return reedSolomonJerasure(f, k, k)
}

// reedSolomonJerasure is that of R parity shards: the last column, now of the
// leading coefficient, is number R-1.
func reedSolomonJerasure(f field.Field, k, r int) (Matrix, error) {
	if err := checkBoth("rs:jerasure", f, k, r, -1); err != nil {
		return nil, err
	}
	return jerasure{f, k, r}, nil
}

type jerasure struct {
	f    field.Field
	k, r int
}

func (m jerasure) Field() field.Field { return m.f }
func (m jerasure) Rows() int          { return m.k }
func (m jerasure) Cols() int          { return m.r }
func (m jerasure) ID() string         { return "rs:jerasure" }

func (m jerasure) At(i, j int) field.Element {
	checkEntry(i, j, m.k, m.r)
	if i == 0 || j == 0 {
		return field.One
	}
	// Elimination makes it the Lagrange matrix Φ_i(y_j), with the leading
	// coefficient of Φ_i in the last column. Rows are divided by column 0 and then
	// columns by row 0, and of Φ_i(y) = w_i·Π(y - x_m) / (y - x_i) these remain.
	x, first, y := field.Code(uint64(i)), field.Code(uint64(m.k)), field.Code(uint64(m.k)+uint64(j))
	numerator, denominator := m.f.Sub(first, x), first
	if j < m.r-1 {
		numerator = m.f.Mul(numerator, y)
		denominator = m.f.Mul(denominator, m.f.Sub(y, x))
	}
	return m.f.Mul(numerator, m.f.Inv(denominator))
}
