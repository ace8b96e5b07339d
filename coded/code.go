package coded

import (
	"fmt"
	"strings"

	"volley/field"
	"volley/internal/printable"
	"volley/matrix"
	"volley/matrix/matrices"
)

// code is the code of a manifest, with the generator matrix [I | A]. A is plain or its inverse.
type code struct {
	plain   matrix.Matrix
	inverse bool
	columns []int         // of A, by coded file; nil: in order
	other   matrix.Matrix // the inverse of plain, once it is needed
}

// codeOf rebuilds the code of a manifest. It is the one place that knows how a matrices.Spec is stored.
func codeOf(m Matrix, f field.Field, k, sinks int) (*code, error) {
	spec, err := matrices.ParseSpec(string(m.Family))
	if err != nil {
		return nil, err
	}
	spec.Order = m.Order
	var sets []matrix.PointSet
	for i, set := range m.Points {
		key := fmt.Sprintf("matrix.points[%d].values", i)
		list, err := elements(f, set.Values)
		if err != nil {
			return nil, fmt.Errorf("%s%w", key, err)
		}
		points, err := matrix.NewPoints(f, list)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", key, strings.TrimPrefix(err.Error(), "matrix: "))
		}
		sets = append(sets, matrix.PointSet{Name: set.Name, Points: points})
	}
	var entries matrix.Matrix
	if len(m.Entries) > 0 {
		d := matrix.NewDense(f, len(m.Entries), len(m.Entries[0]))
		for i, row := range m.Entries {
			key := fmt.Sprintf("matrix.entries[%d]", i)
			if len(row) != d.Cols() {
				return nil, fmt.Errorf("%s: %s: want %d as in row 0", key, printable.Count(len(row), "value"), d.Cols())
			}
			list, err := elements(f, row)
			if err != nil {
				return nil, fmt.Errorf("%s%w", key, err)
			}
			for j, e := range list {
				d.Set(i, j, e)
			}
		}
		entries = d
	}
	plain, err := spec.BuildFrom(f, k, sinks, sets, entries)
	if err != nil {
		return nil, err
	}
	c := &code{plain: plain, inverse: m.Inverse, columns: m.Columns}
	if c.columns != nil {
		if _, err := matrix.Columns(plain, c.columns); err != nil {
			return nil, fmt.Errorf("matrix.columns: %s", strings.TrimPrefix(err.Error(), "matrix: "))
		}
	}
	return c, nil
}

// Code returns A, K × R, whose columns are in the order of the coded files. The error says what is wrong with m.
func (m *Manifest) Code() (matrix.Matrix, error) {
	s := &stored{Manifest: m}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s.code.matrix()
}

// elements reads elements in decimal. The error begins with the index of the one that it is about.
func elements(f field.Field, texts []string) ([]field.Element, error) {
	list := make([]field.Element, len(texts))
	for i, text := range texts {
		e, err := field.ParseElement(f, text)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		list[i] = e
	}
	return list, nil
}

// matrix returns A, its columns in the order of the coded files.
func (c *code) matrix() (matrix.Matrix, error) {
	a, err := c.either(c.inverse)
	if err != nil || c.columns == nil {
		return a, err
	}
	return matrix.Columns(a, c.columns)
}

// inverted returns the inverse of A, with the structure that A has. The error wraps matrix.ErrSingular without one.
func (c *code) inverted() (matrix.Matrix, error) {
	if c.columns == nil {
		return c.either(!c.inverse)
	}
	a, err := c.matrix()
	if err != nil {
		return nil, err
	}
	return matrix.Inverse(a)
}

func (c *code) either(inverse bool) (_ matrix.Matrix, err error) {
	if !inverse {
		return c.plain, nil
	}
	if c.other == nil {
		c.other, err = matrix.Inverse(c.plain)
	}
	return c.other, err
}
