package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/field"
	"volley/files"
	"volley/matrix"
)

// described returns the manifest of a run over the field 257, with the matrix m of four packets of four bytes.
func described(m MatrixSpec) *Manifest {
	is := &Manifest{Field: "257", Matrix: m, Processors: 4, SymbolBytes: 2, SymbolsPerPacket: 4, BitsPerSymbol: 8}
	for k := range is.Processors {
		sum := strings.Repeat(fmt.Sprint(k), 64)
		is.Files = append(is.Files, CodedFile{files.Name(CodedName(k, 4, 3)), k, 8, sum})
		is.Inputs = append(is.Inputs, CodedFile{files.Name(fmt.Sprint("in.", k)), k, 4, sum})
	}
	return is
}

// TestCode makes matrices that are inverted, whose columns have another order, and both. The inverse of an inverse is
// there at once: its entries are those of the family.
func TestCode(t *testing.T) {
	t.Parallel()
	for _, family := range []files.Name{"random:7", "cauchy"} {
		m := MatrixSpec{Family: family}
		if family == "cauchy" {
			m.Points = []PointList{{"x", []string{"0", "1", "2", "3"}}, {"y", []string{"4", "5", "6", "7"}}}
		}
		code := func(inverse bool, columns ...int) matrix.Matrix {
			t.Helper()
			m.Inverse, m.Columns = inverse, columns
			a, err := described(m).Code()
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		order := []int{2, 0, 3, 1}
		plain, inverse, permuted, both := code(false), code(true), code(false, order...), code(true, order...)
		back, err := matrix.Inverse(t.Context(), inverse)
		if err != nil {
			t.Fatal(err)
		}
		product, err := matrix.Mul(matrix.DenseOf(plain), inverse)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			for j := range 4 {
				one := product.At(i, j) == field.Element{} && i != j || product.At(i, j) == field.One && i == j
				if back.At(i, j) != plain.At(i, j) || permuted.At(i, j) != plain.At(i, order[j]) || both.At(i, j) != inverse.At(i, order[j]) || !one {
					t.Fatalf("%s: entry %d, %d is not right", family, i, j)
				}
			}
		}
	}
	for want, m := range map[string]MatrixSpec{
		"matrix.columns: ":       {Family: "random:7", Columns: []int{0, 1, 2, 2}},
		"matrix is singular":     {Family: "file:A.csv", Inverse: true, Entries: slices.Repeat([][]string{{"1", "2", "3", "4"}}, 4)},
		"matrix.entries[1]: 1 v": {Family: "file:A.csv", Entries: [][]string{{"1", "2"}, {"3"}}},
	} {
		if _, err := described(m).Code(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
