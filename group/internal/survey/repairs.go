package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/pass"
	"volley/group/internal/restore"
	"volley/group/internal/session"
	"volley/group/protection"
)

// blockRepair is a repair of the rows in which the same symbols are bad.
type blockRepair struct {
	*erasure.Repair
	rows []int            // ascending
	lost []content.Symbol // that it does not bring back
}

// code runs the repair on rows of windows, and puts the blocks that come back.
func (r *blockRepair) code(ctx context.Context, s *session.Session, windows []*pass.Window, rows []int, put func(pass.Block) error, traffic *protection.PlanTraffic) error {
	parts, t, err := pass.Code(ctx, s, windows, pass.CellsOf(s.Manifest, rows), r.Repair)
	if err != nil {
		return err
	}
	erasure.Add(traffic, t)
	for _, w := range parts {
		for b := range w.Blocks(r.Outputs[w.Node]) {
			if err := put(b); err != nil {
				return err
			}
		}
	}
	return nil
}

type lostBlock struct {
	content.Symbol
	row int
}

// A pattern is which symbols of a row are bad, and which of these are to come back.
type pattern struct{ bad, wanted []content.Symbol }

// patternsOf returns the patterns of all rows.
func patternsOf(s *session.Session, conditions []*content.Condition, remake bool) []pattern {
	patterns := make([]pattern, s.Manifest.Rows())
	visit := func(chunks [][]int, x content.Symbol, add func(*pattern, content.Symbol)) {
		for chunk, rows := range chunks {
			x.Index = chunk
			for _, row := range rows {
				add(&patterns[row], x)
			}
		}
	}
	bad := func(p *pattern, x content.Symbol) { p.bad = append(p.bad, x) }
	wanted := func(p *pattern, x content.Symbol) { p.wanted = append(p.wanted, x) }
	for n, c := range conditions {
		data, parity := content.Symbol{Node: n}, content.Symbol{Node: n, Parity: true}
		visit(c.Data, data, bad)
		visit(c.Parity, parity, bad)
		if c.Failing == "" {
			visit(filledRows(c.Touched, c.Holes), data, wanted)
			if remake {
				visit(filledRows(c.Parity, c.ParityHoles), parity, wanted)
			}
		}
	}
	return patterns
}

// filledRows returns, by chunk, the rows that are no holes.
func filledRows(chunks, holes [][]int) [][]int {
	if holes == nil {
		return chunks
	}
	filled := make([][]int, len(chunks))
	for chunk, rows := range chunks {
		filled[chunk] = slices.DeleteFunc(slices.Clone(rows), func(row int) bool {
			_, hole := slices.BinarySearch(holes[chunk], row)
			return hole
		})
	}
	return filled
}

// PlanRepairs returns the repairs, one for all rows with the same bad symbols, and the blocks that do not come back. With
// remake, parity comes back too; else it only serves.
func PlanRepairs(ctx context.Context, s *session.Session, conditions []*content.Condition, remake bool) (list []*blockRepair, beyond map[lostBlock]bool, err error) {
	c, err := erasure.CodeOf(s.Manifest)
	if err != nil {
		return nil, nil, err
	}
	repairs := map[string]*blockRepair{} // by pattern
	beyond = map[lostBlock]bool{}
	for row, p := range patternsOf(s, conditions, remake) {
		if len(p.wanted) == 0 {
			continue
		}
		r := repairs[fmt.Sprint(p)]
		if r == nil {
			r = new(blockRepair)
			if r.Repair, r.lost, err = c.Repairing(ctx, erasure.SetOf(p.bad), erasure.SetOf(p.wanted)); err != nil {
				return nil, nil, err
			}
			if repairs[fmt.Sprint(p)] = r; len(r.Traffic.Codewords) > 0 {
				list = append(list, r)
			}
		}
		r.rows = append(r.rows, row)
		for _, x := range r.lost {
			beyond[lostBlock{x, row}] = true
		}
	}
	return list, beyond, nil
}

// RunRepairs runs repairs, one after the other. It drops blocks that have no target.
func RunRepairs(ctx context.Context, s *session.Session, list []*blockRepair, targets map[int]*restore.Target, traffic *protection.PlanTraffic) error {
	sources, parity := map[int]*content.Data{}, map[int]*content.Parity{}
	for _, n := range s.Nodes {
		sources[n.Index], parity[n.Index] = content.NewData(n.Dir, s.RecordOf[n.Index].Entries, true), content.ParityOf(n, s.Manifest)
		defer sources[n.Index].Close()
		defer parity[n.Index].Close()
	}
	return RunRepairsFrom(ctx, s, list, func(x content.Symbol) io.ReaderAt {
		if x.Parity {
			return parity[x.Node]
		}
		return sources[x.Node]
	}, func(x content.Symbol, row int, block []byte) error {
		target := targets[x.Node]
		if target == nil {
			return nil
		}
		return target.Try(ctx, func() error { return target.PutOrSkip(x, row, block) })
	}, traffic)
}

// RunRepairsFrom runs repairs. It reads symbols of nodes here by reader, and put takes the blocks that come back.
func RunRepairsFrom(ctx context.Context, s *session.Session, list []*blockRepair, reader func(content.Symbol) io.ReaderAt, put func(x content.Symbol, row int, block []byte) error, traffic *protection.PlanTraffic) error {
	m := s.Manifest
	for _, r := range list {
		for _, row := range r.rows {
			_, n := m.Block(row)
			for _, x := range s.Nodes {
				s.Tell(0, int64(len(r.Outputs[x.Index]))*n)
			}
		}
	}
	for _, r := range list {
		err := pass.EachWindow(ctx, s, m, pass.CellsOf(m, r.rows), 0, func(ctx context.Context, _ int, w *pass.Window) error {
			for b := range w.Blocks(r.Inputs[w.Node]) {
				chunks := m.DataChunks
				if b.Parity {
					chunks = m.ParityChunks
				}
				n, err := reader(b.Symbol).ReadAt(b.Bytes, m.OffsetOf(b.Row, b.Index, chunks))
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if n < len(b.Bytes) && err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				clear(b.Bytes[n:])
			}
			return nil
		}, func(ctx context.Context, windows []*pass.Window) error {
			return r.code(ctx, s, windows, windows[0].Rows(), func(b pass.Block) error {
				s.Tell(int64(len(b.Bytes)), 0)
				return put(b.Symbol, b.Row, b.Bytes)
			}, traffic)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
