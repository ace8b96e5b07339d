package survey

import (
	"context"
	"errors"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/pass"
	"volley/group/internal/restore"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

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

// A Rebuild brings back lost nodes while it examines the others: it reads these once, takes digests, and codes the same
// rows. In rows without fault, the conditions of lost nodes are clean then. In other rows, everything lost still has to
// come back.
type Rebuild struct {
	Targets map[int]*restore.Target     // of nodes here: it adds the lost ones
	Room    func(context.Context) error // is called before anything is written to targets
	Traffic *protection.PlanTraffic

	s       *session.Session
	repairs []*blockRepair
	nodes   map[int]*examination // of the nodes here
	redo    map[int][]int        // rows with a wrong block, by lost node here
}

// A reading is what a rebuild has read of a node that is not lost.
type reading struct {
	data      *content.Comparer
	parity    *content.Parity
	badParity [][]int // by chunk: rows
}

// run returns the conditions of all nodes.
func (x *Rebuild) run(ctx context.Context, s *session.Session, edits protection.Edits) ([]*content.Condition, error) {
	x.s, x.nodes, x.redo = s, map[int]*examination{}, map[int][]int{}
	for _, n := range s.Nodes {
		e := newExamination(s, n, scope{Part: scrub.EntireNode}, edits)
		if x.nodes[n.Index] = e; !e.state.Lost {
			d := content.NewData(n.Dir, e.record.Entries, true)
			e.reading = &reading{content.NewComparer(s.Manifest, d, e.record), content.ParityOf(n, s.Manifest), make([][]int, s.Manifest.ParityChunks)}
			defer d.Close()
			defer e.reading.parity.Close()
		}
	}
	if err := x.planLost(ctx); err != nil {
		return nil, err
	}
	if err := x.Room(ctx); err != nil {
		return nil, err
	}
	if err := s.EachSteady(ctx, x.prepare); err != nil {
		return nil, err
	}
	if err := x.readAndCode(ctx); err != nil {
		return nil, err
	}
	conditions, err := ConditionsOf(ctx, s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		c, err := x.nodes[n.Index].run(ctx)
		c.Redo = x.redo[n.Index]
		return c, err
	})
	if err == nil {
		dropRestored(conditions)
	}
	return conditions, err
}

// planLost plans the repairs of lost nodes, as if the others were whole, and makes their targets.
func (x *Rebuild) planLost(ctx context.Context) error {
	conditions, err := ConditionsOf(ctx, x.s, func(ctx context.Context, _ int, n *store.Node) (*content.Condition, error) {
		if x.nodes[n.Index].state.Lost {
			return x.nodes[n.Index].run(ctx)
		}
		return new(content.Condition), nil
	})
	if err != nil {
		return err
	}
	if x.repairs, _, err = PlanRepairs(ctx, x.s, conditions, true); err != nil {
		return x.s.SharedError(ctx, err)
	}
	for _, n := range x.s.Nodes {
		if x.s.States[n.Index].Lost {
			x.Targets[n.Index] = NewTarget(x.s, n, conditions[n.Index])
		}
	}
	return nil
}

// prepare prepares the target of a lost node, and finds the files of another one.
func (x *Rebuild) prepare(ctx context.Context, _ int, n *store.Node) error {
	if target := x.Targets[n.Index]; target != nil {
		return target.Try(ctx, func() error { return target.Prepare(ctx) })
	}
	m := x.s.Manifest
	l, err := tree.Scan(n.Dir, false, m.Rules())
	if err != nil {
		l = &tree.Listing{} // the examination reports the error
	}
	return content.FindSources(ctx, m, n.Dir, l, x.s.RecordOf[n.Index], content.AllFiles)
}

// readAndCode reads the nodes that are not lost, window by window, and codes what is lost.
func (x *Rebuild) readAndCode(ctx context.Context) error {
	s, m := x.s, x.s.Manifest
	bytes := int64(0)
	for _, n := range s.Nodes {
		bytes += s.RecordOf[n.Index].Bytes
	}
	return pass.EachWindow(ctx, s, m, pass.CellsOf(m, content.AllRows(m)), bytes, func(ctx context.Context, i int, w *pass.Window) error {
		if r := x.nodes[s.Nodes[i].Index].reading; r != nil {
			return r.read(ctx, w)
		}
		for _, memory := range w.Positions(false) { // of a lost node, what comes back of earlier rows: where it had nothing are zeros
			for _, chunk := range memory {
				clear(chunk)
			}
		}
		return nil
	}, x.code)
}

// code makes what is lost in the rows of windows, and puts it into the targets.
func (x *Rebuild) code(ctx context.Context, windows []*pass.Window) error {
	for _, r := range x.repairs {
		rows := slices.DeleteFunc(slices.Clone(windows[0].Rows()), func(row int) bool {
			_, found := slices.BinarySearch(r.rows, row)
			return !found
		})
		if len(rows) == 0 {
			continue
		}
		if err := r.code(ctx, x.s, windows, rows, func(b pass.Block) error { return x.put(ctx, b) }, x.Traffic); err != nil {
			return err
		}
	}
	return nil
}

// put gives a block to its target. One that is wrong, as a source of it has rotted, is to be made again.
func (x *Rebuild) put(ctx context.Context, b pass.Block) error {
	target := x.Targets[b.Node]
	return target.Try(ctx, func() error {
		err := target.Put(b.Symbol, b.Row, b.Bytes)
		if errors.As(err, new(*protection.CorruptError)) {
			x.redo[b.Node] = append(x.redo[b.Node], b.Row)
			return nil
		}
		return err
	})
}

// dropRestored takes from the conditions of lost nodes the rows that are back: those in which nothing is wrong.
func dropRestored(conditions []*content.Condition) {
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
		if !c.Lost || c.Failing != "" {
			continue
		}
		for _, chunks := range [][][]int{c.Data, c.Parity, c.Touched} {
			for chunk, rows := range chunks {
				chunks[chunk] = slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return !wrong[row] })
			}
		}
	}
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
