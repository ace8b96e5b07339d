// Package matrix holds the matrices a system encodes with: dense ones, and
// families whose entries are computed on demand.
//
// A[i][j] multiplies initial packet i in coded packet j:
//
//	coded_j = Σ_i A[i][j]·x_i
//
// so rows are inputs, columns are outputs, and the packets form a row vector:
// encoding with A and then with B is encoding with A·B ([Mul]).
//
// K is the number of rows, the sources, and R that of columns, the sinks; R = K
// where nothing is said of R. q is the order of the field, and g its generator,
// [field.Field.Generator]. The on-demand families take memory in proportion to
// K and R at most, so that an entry of a matrix with K = 10^6 costs no more than
// a few field operations:
//
//	[DFT]          ω^(ij), ω of order K
//	[Vandermonde]  α_j^i on a set of [Points]
//	[Lagrange]     from values at one set of points to values at another
//	[Cauchy]       1/(x_i - y_j); [FTI] is one
//	[LCH]          the additive FFT's
//	[Moore]        α_j^(b^i); [Gabidulin] is made of two
//	[Random]       uniform, a function of a seed
//
// ReedSolomon… are the parity parts of libraries. A matrix with structure is a
// product of layers of small matrices: [Factor] finds it, and finds it in each
// [Block] of a matrix that is not square.
//
// [FromCSV] reads any other matrix. [ParseSpec] selects one by name, as on the
// command line.
package matrix
