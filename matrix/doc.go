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
// K is the number of processors, q the order of the field, and g its generator,
// [field.Field.Generator]. The on-demand families take memory in proportion to
// K at most, so that an entry of a matrix with K = 10^6 costs no more than a
// few field operations:
//
//	[DFT]          ω^(ij), ω of order K
//	[Vandermonde]  α_j^i on a set of [Points]
//	[Cauchy]       1/(x_i - y_j)
//	[Random]       uniform, a function of a seed
//
// [FromCSV] reads any other matrix. [ParseSpec] selects one by name, as on the
// command line.
package matrix
