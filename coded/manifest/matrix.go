package manifest

import (
	"context"
	"fmt"
	"strings"

	"volley/field"
	"volley/internal/printable"
	"volley/matrix"
	"volley/matrix/matrices"
)

// Code returns A, K × R, whose columns are in the order of the coded files. The error says what is wrong with m.
func (m *Manifest) Code() (matrix.Matrix, error) {
	f, err := m.Validate()
	if err != nil {
		return nil, err
	}
	a, err := m.Matrix.build(f, m.Processors, m.CodedPackets())
	if err == nil && m.Matrix.Inverse {
		a, err = matrix.Inverse(context.Background(), a)
	}
	if err != nil || m.Matrix.Columns == nil {
		return a, err
	}
	if a, err = matrix.Columns(a, m.Matrix.Columns); err != nil {
		return nil, fmt.Errorf("matrix.columns: %s", strings.TrimPrefix(err.Error(), "matrix: "))
	}
	return a, nil
}

// build makes the matrix, which is neither inverted yet nor has its columns in another order. It is the one place that
// knows how a matrices.Spec is stored.
func (m *MatrixSpec) build(f field.Field, k, sinks int) (matrix.Matrix, error) {
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
	return spec.BuildFrom(f, k, sinks, sets, entries)
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
