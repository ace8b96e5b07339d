package survey

import (
	"context"
	"errors"
	"slices"

	"volley/executor"
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/pass"
	"volley/group/internal/restore"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// A reading is what a rebuild has found of a node that is not lost.
type reading struct {
	data      *content.Comparer
	parity    *content.Parity
	badParity [][]int // by chunk: rows
}

// Rebuildable reports whether nodes are lost, no more than may be, and the others can be read and hold the generation.
func Rebuildable(s *session.Session) bool {
	lost := 0
	for _, x := range s.States {
		switch {
		case x.Failing != "":
			return false
		case x.Lost:
			lost++
		case x.Holding(s.Current) == nil:
			return false
		}
	}
	return lost > 0 && lost <= s.Manifest.Tolerate && s.LostRecords == nil
}

// rebuild brings back lost nodes while it examines the others: it reads these once, takes digests, and codes the same
// rows. It adds the lost nodes here to targets, and the rows it has coded to rows. In rows without fault, the conditions
// of lost nodes are clean. In other rows, everything lost still has to come back.
func rebuild(ctx context.Context, s *session.Session, edits protection.Edits, targets map[int]*restore.Target, room func(context.Context) error, rows map[int]bool, traffic *protection.PlanTraffic) ([]*content.Condition, error) {
	m := s.Manifest
	conditions, err := ConditionsOf(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		if s.States[n.Index].Lost {
			return examine(ctx, s, n, edits, nil)
		}
		return new(content.Condition), nil
	})
	if err != nil {
		return nil, err
	}
	repairs, _, err := PlanRepairs(ctx, s, conditions, true)
	if err != nil {
		return nil, s.SharedError(ctx, err)
	}
	bytes := int64(0)
	readings, redo := make([]*reading, len(s.Nodes)), make([][]int, len(s.Nodes))
	defer func() {
		for _, x := range readings {
			if x == nil {
				continue
			}
			x.data.D.Close()
			x.parity.Close()
		}
	}()
	for i, n := range s.Nodes {
		bytes += s.RecordOf[n.Index].Bytes
		if s.States[n.Index].Lost {
			targets[n.Index] = NewTarget(s, n, conditions[n.Index])
			continue
		}
		x := s.RecordOf[n.Index]
		readings[i] = &reading{content.NewComparer(m, content.NewData(n.Dir, x.Entries, true), x), content.ParityOf(n, m), make([][]int, m.ParityChunks)}
	}
	if err := room(ctx); err != nil {
		return nil, err
	}
	if err := s.EachSteady(ctx, func(ctx context.Context, _ int, n *store.Node) error {
		if x := targets[n.Index]; x != nil {
			return x.Try(ctx, func() error { return x.Prepare(ctx) })
		}
		l, err := tree.Scan(n.Dir, false, m.Rules())
		if err != nil {
			l = &tree.Listing{} // examine reports the error
		}
		return content.FindSources(ctx, m, n.Dir, l, s.RecordOf[n.Index], content.AllFiles)
	}); err != nil {
		return nil, err
	}
	firstNode := s.Nodes[0].Index
	if err := pass.EachWindow(ctx, s, m, pass.CellsOf(m, content.AllRows(m)), bytes, func(ctx context.Context, i int, w *pass.Window) error {
		if readings[i] == nil {
			return nil
		}
		return readings[i].read(ctx, w)
	}, func(ctx context.Context, windows []*pass.Window) error {
		for _, r := range repairs {
			b := r.blocks.RowRange(windows[0].Rows())
			if len(b.Rows) == 0 {
				continue
			}
			var parts []*pass.Window
			for _, w := range windows {
				parts = append(parts, w.Part(pass.CellsOf(m, b.Rows)))
			}
			t, err := r.Run(ctx, s.Setting(), b.Bytes(), func(x content.Symbol) executor.Input {
				return executor.Input{Memory: parts[x.Node-firstNode].Chunk(x)}
			}, func(x content.Symbol) executor.Output {
				return executor.Output{Writer: &content.BlockWriter{Blocks: b, Take: func(row int, block []byte) error {
					target := targets[x.Node]
					return target.Try(ctx, func() error {
						err := target.Put(x, row, block)
						if errors.As(err, new(*protection.CorruptError)) { // a source of the block has rotted
							redo[x.Node-firstNode] = append(redo[x.Node-firstNode], row)
							return nil
						}
						return err
					})
				}}}
			})
			if err != nil {
				return err
			}
			erasure.Add(traffic, t)
			for _, row := range b.Rows {
				rows[row] = true
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if conditions, err = ConditionsOf(ctx, s, func(ctx context.Context, i int, n *store.Node) (*content.Condition, error) {
		c, err := examine(ctx, s, n, edits, readings[i])
		if err == nil {
			c.Redo = redo[i]
		}
		return c, err
	}); err != nil {
		return nil, err
	}
	wrong := map[int]bool{} // rows
	for _, c := range conditions {
		lists := [][]int{c.Redo}
		if !c.Lost || c.Failing != "" {
			lists = slices.Concat(c.Data, c.Parity)
		}
		for _, row := range slices.Concat(lists...) {
			wrong[row] = true
		}
	}
	for _, c := range conditions {
		if c.Lost && c.Failing == "" {
			for _, chunks := range [][][]int{c.Data, c.Parity, c.Touched} {
				for chunk, rows := range chunks {
					chunks[chunk] = slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return !wrong[row] })
				}
			}
		}
	}
	return conditions, nil
}

// read reads the rows of a window, and compares them with the record.
func (x *reading) read(ctx context.Context, w *pass.Window) error {
	m := w.M
	for blocks := range w.Positions(false) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, b := range blocks {
			x.data.Block(m.OffsetOf(b.Row, b.Index, m.DataChunks), b.Bytes)
		}
		x.data.Settle()
	}
	for blocks := range w.Positions(true) {
		for _, b := range blocks {
			if !content.ReadParity(m, x.parity, x.data.X, b.Row, b.Index, b.Bytes) {
				x.badParity[b.Index] = append(x.badParity[b.Index], b.Row)
			}
		}
	}
	return nil
}
