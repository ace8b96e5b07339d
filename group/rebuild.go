package group

import (
	"context"
	"errors"
	"slices"

	"volley/executor"
	"volley/group/internal/tree"
)

// A reading is what a rebuild has found of a node that is not lost.
type reading struct {
	data      *comparer
	parity    *noting
	badParity [][]int // by chunk: rows
}

// rebuildable reports whether nodes are lost, no more than may be, and the others can be read and hold the generation.
func (s *session) rebuildable() bool {
	lost := 0
	for _, x := range s.states {
		switch {
		case x.Failing != "":
			return false
		case x.Lost:
			lost++
		case x.of(s.current) == nil:
			return false
		}
	}
	return lost > 0 && lost <= s.manifest.Tolerate && s.gone == nil
}

// rebuild brings back what lost nodes had while it examines the others: it reads these once, and codes what it takes
// the digests of. It adds the lost nodes here to the targets, and the rows that it has coded to rows. The conditions
// are as if nothing came back in rows in which all was right; in the others all that is lost has to come back yet.
func (s *session) rebuild(ctx context.Context, revert bool, targets map[int]*target, rows map[int]bool, traffic *Traffic) ([]*condition, error) {
	m := s.manifest
	conditions, err := s.conditions(ctx, func(ctx context.Context, _ int, n *node) (*condition, error) {
		if s.states[n.index].Lost {
			return s.examine(ctx, n, false, revert, nil)
		}
		return new(condition), nil
	})
	if err != nil {
		return nil, err
	}
	repairs, _, err := s.planRepairs(conditions)
	if err != nil {
		return nil, s.alike(ctx, err)
	}
	bytes := int64(0)
	readings, redo := make([]*reading, len(s.nodes)), make([][]int, len(s.nodes))
	defer func() {
		for _, x := range readings {
			if x == nil {
				continue
			}
			x.data.d.close()
			x.parity.Close()
		}
	}()
	for i, n := range s.nodes {
		bytes += s.members[n.index].Bytes
		if s.states[n.index].Lost {
			targets[n.index] = s.newTarget(n, conditions[n.index])
			continue
		}
		x := s.members[n.index]
		readings[i] = &reading{newComparer(m, newData(n.dir, x.Entries, true), x), &noting{parityReader: n.parityOf(s.generation)}, make([][]int, m.ParityChunks)}
	}
	if err := s.each(ctx, func(ctx context.Context, _ int, n *node) error {
		if x := targets[n.index]; x != nil {
			return x.try(ctx, func() error { return x.prepare(ctx) })
		}
		l, err := tree.Scan(n.dir, false, m.Exclude)
		if err != nil {
			l = &tree.Listing{} // which examine finds, too
		}
		return m.findSources(ctx, n.dir, l, s.members[n.index], true)
	}); err != nil {
		return nil, err
	}
	here := s.nodes[0].index
	if err := s.windows(ctx, m, m.allRows(), bytes, func(ctx context.Context, i int, w *window) error {
		if readings[i] == nil {
			return nil
		}
		return readings[i].read(ctx, w)
	}, func(ctx context.Context, windows []*window) error {
		for _, r := range repairs {
			b := r.blocks.within(windows[0].first, windows[0].end)
			if len(b.rows) == 0 {
				continue
			}
			t, err := s.repair(ctx, r.repair, b, func(x symbol) executor.Input {
				w := windows[x.node-here]
				if x.parity {
					return w.input(w.parity, x.index, b)
				}
				return w.input(w.data, x.index, b)
			}, func(x symbol) executor.Output {
				return executor.Output{Writer: &blockWriter{blocks: b, take: func(row int, block []byte) error {
					to := targets[x.node]
					return to.try(ctx, func() error {
						err := to.put(x, row, block)
						if errors.As(err, new(*WrongError)) { // something that it is made of has rotted
							redo[x.node-here] = append(redo[x.node-here], row)
							return nil
						}
						return err
					})
				}}}
			})
			if err != nil {
				return err
			}
			traffic.add(t)
			for _, row := range b.rows {
				rows[row] = true
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if conditions, err = s.conditions(ctx, func(ctx context.Context, i int, n *node) (*condition, error) {
		c, err := s.examine(ctx, n, false, revert, readings[i])
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
			for _, of := range [][][]int{c.Data, c.Parity, c.Touched} {
				for chunk, rows := range of {
					of[chunk] = slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return !wrong[row] })
				}
			}
		}
	}
	return conditions, nil
}

// read reads the rows of a window, and compares them with the record.
func (x *reading) read(ctx context.Context, w *window) error {
	m := w.m
	for row := w.first; row < w.end; row++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for chunk := range m.DataChunks {
			x.data.block(row, chunk, w.block(w.data, row, chunk), true)
		}
		x.data.settle()
		for chunk := range m.ParityChunks {
			if !m.readParity(x.parity, x.data.x, row, chunk, w.block(w.parity, row, chunk)) {
				x.badParity[chunk] = append(x.badParity[chunk], row)
			}
		}
	}
	return nil
}
