package explore

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"volley/coded/manifest"
	"volley/field"
	"volley/internal/comparison"
	"volley/internal/selection"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// What the page loads: bytes of a plan, of a request with one, in which quotes are escaped, and of any other request.
const (
	mostPlan    = 4 << 20
	mostBytes   = 8 << 20
	mostRequest = 64 << 10
)

type loadRequest struct {
	Name  string `json:"name"` // of the file
	Text  string `json:"text"`
	Flags flags  `json:"flags"` // the model; for a plan the matrix to compare it with
}

// ownPlan returns a plan of the user's own. A is the matrix of the flags, if they name one; else it is what the plan computes.
func ownPlan(ctx context.Context, m *plan.Materialized, s *selection.Selection, model sim.Model) (*planAnswer, error) {
	i, n := m.Info(), m.Info().PieceCount()
	counted := sim.Count(m)
	a := &planAnswer{Info: describe(i), Candidates: []candidate{}, Rejected: []rejection{}, OwnMatrix: s == nil, Cost: costOf(counted, model)}
	a.Cost.Bounds = comparison.BoundsOf(nil, i, counted)
	build := func() (matrix.Matrix, error) { return computedBy(ctx, m) }
	if s != nil {
		s.Processors, s.Sinks, s.Field, build = i.Rows/n, i.Columns/n, i.Field.Name(), s.Build
	}
	return a, a.show(ctx, m, build)
}

// computedBy returns the matrix that a plan computes. Its entries are those of the first pieces of packets.
func computedBy(ctx context.Context, m *plan.Materialized) (matrix.Matrix, error) {
	memories, err := verify.Trace(ctx, m)
	if err != nil {
		return nil, err
	}
	i := m.Info()
	n := i.PieceCount()
	computed := matrix.NewDense(i.Field, i.Rows/n, i.Columns/n)
	for k, columns := range m.Columns {
		for o, column := range columns {
			for row := 0; row < i.Rows && column%n == 0; row += n {
				computed.Set(row/n, column/n, memories[k].Coefficient(m.Programs[k].Outputs[o], row))
			}
		}
	}
	return computed, nil
}

// encodedPlan returns the plan for the matrix of a manifest of volley encode, points and entries included.
func encodedPlan(ctx context.Context, text string, s *selection.Selection) (*planAnswer, error) {
	m, err := manifest.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	s.Processors, s.Sinks, s.Inverse, s.Matrix = m.Processors, m.CodedPackets(), m.Matrix.Inverse, string(m.Matrix.Family)
	if err := cmp.Or(bounded(s, mostProcessors), invertible(s, m.Processors)); err != nil {
		return nil, err
	}
	a, err := m.Code()
	if err != nil {
		return nil, err
	}
	q := &question{Selection: s, matrix: a}
	if err := q.prepare(ctx); err != nil {
		return nil, err
	}
	return q.answer(ctx)
}

// load reads a plan, or the manifest of volley encode. What is wrong with the file is a *selection.Error of the field file.
func load(ctx context.Context, request loadRequest) (*planAnswer, error) {
	s, err := request.Flags.parse()
	if err != nil {
		return nil, err
	}
	name := strings.Join(strings.Fields(request.Name), " ")
	if name == "" {
		name = "the file"
	}
	switch head := request.Text[:min(len(request.Text), 200)]; {
	case len(request.Text) > mostPlan:
		return nil, selection.Markf("file", "%s: %d bytes: the page reads files of %d at most", name, len(request.Text), mostPlan)
	case strings.Contains(head, `"volley-manifest"`):
		a, err := encodedPlan(ctx, request.Text, s)
		if err != nil && ctx.Err() == nil {
			err = selection.Markf("file", "%s: %s", name, selection.Message(err))
		}
		return a, err
	}
	p, err := plan.Decode(strings.NewReader(request.Text))
	if err == nil && p.Common.Processors > mostProcessors {
		err = fmt.Errorf("%d processors, and the page shows %d at most", p.Common.Processors, mostProcessors)
	}
	if err != nil {
		return nil, selection.Markf("file", "%s: %w: want a plan of volley plan, as JSON, or a manifest", name, err)
	}
	bytes, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	m, err := s.Model(p.Common.Field, field.PackingOf(p.Common.Field).Symbols(bytes))
	if err != nil {
		return nil, err
	}
	if request.Flags["matrix"] == "" {
		s = nil
	}
	return ownPlan(ctx, p, s, m)
}
