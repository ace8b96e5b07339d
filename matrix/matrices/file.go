package matrices

import (
	"fmt"

	"volley/matrix"
)

// stored returns the matrix of a file, or the given one, with the structure that its entries show.
func (b *builder) stored() (matrix.Matrix, error) {
	if !b.explicit {
		return b.read(b.Argument)
	}
	if b.entries == nil {
		return nil, fmt.Errorf("matrix: %s:%s without its entries", b.Family, b.Argument)
	}
	if b.entries.Field().Name() != b.f.Name() || b.entries.Rows() != b.k || b.entries.Cols() != b.r {
		return nil, fmt.Errorf("matrix: entries of a %d×%d matrix over %s, and %s over %s",
			b.entries.Rows(), b.entries.Cols(), b.entries.Field().Name(), b.need(), b.f.Name())
	}
	return matrix.Recognised(b.entries), nil
}

// need says what shape is needed, for people.
func (b *builder) need() string {
	if b.k == b.r {
		return fmt.Sprintf("K = %d processors need %d×%d", b.k, b.k, b.k)
	}
	return fmt.Sprintf("K = %d sources and R = %d sinks need %d×%d", b.k, b.r, b.k, b.r)
}

// read reads the matrix in the file of that name.
func (b *builder) read(name string) (matrix.Matrix, error) {
	r, err := b.OpenFile(name)
	if err != nil {
		return nil, fmt.Errorf("matrix: %w", err)
	}
	defer r.Close()
	d, rows, err := readCSV(b.f, r, name, b.k)
	if err != nil {
		return nil, err
	}
	if rows != b.k || d.Cols() != b.r {
		want := ""
		switch {
		case rows == b.k:
			want = fmt.Sprintf(": want a file of that shape, or R = %d sinks", d.Cols())
		case b.k != b.r:
			want = fmt.Sprintf(": want a file of that shape, or K = %d sources and R = %d sinks", rows, d.Cols())
		}
		return nil, fmt.Errorf("matrix: %s is %d×%d, and %s%s", name, rows, d.Cols(), b.need(), want)
	}
	return matrix.Recognised(d), nil
}
