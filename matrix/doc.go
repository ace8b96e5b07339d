// Package matrix holds matrices to encode with: dense ones, and families whose entries are computed on demand.
//
// A[i][j] multiplies initial packet i in coded packet j:
//
//	coded_j = Σ_i A[i][j]·x_i
//
// so rows are inputs, columns are outputs, and the packets form a row vector:
// encoding with A and then with B is encoding with A·B ([Mul]).
//
// K is the number of rows, one for each source. R is the number of columns, one for each sink; a square matrix has R =
// K. q is the order of the field, and g its generator, [field.Field.Generator]. A matrix of a family on demand takes
// memory in proportion to K and R at most, and an entry costs a few field operations, also where K = 10^6:
//
//	[DFT]          ω^(ij), ω of order K
//	[Vandermonde]  α_j^i on a set of [Points]
//	[Lagrange]     from values at one set of points to values at another
//	[Cauchy]       1/(x_i - y_j); [FTI] is one
//	[LCH]          the additive FFT's
//	[Random]       uniform, a function of a seed
//
// [ReedSolomonVandermonde], [ReedSolomonCauchy], [ReedSolomonPAR1] and [ReedSolomonJerasure] are the parity parts of
// the codes of libraries. Package matrices has matrices by their names, and reads any other from a file.
//
// A matrix with structure is a product of layers of small matrices. [Factor] finds the
// layers. Where a matrix is not square, Factor finds those of each [Block]. [Recognised] finds the family of entries.
//
// [Dense] does Gaussian elimination: [Dense.Basis], [Dense.Inverse] and [Dense.Echelon].
package matrix
