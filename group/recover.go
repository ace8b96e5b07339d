package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"volley/executor"
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/restore"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/transport"
)

// RecoverOptions say how to recover.
type RecoverOptions struct {
	Options
	Revert bool // bring back files too that were changed since
	Beyond bool // try although more nodes are lost than the group tolerates
	DryRun bool // write nothing

	// To, unless empty, is a directory in which the data of lost nodes comes back, that of node 3 in To/node.3, and
	// nothing else is written. Where ranks are on several machines, it is on that of the lost node's rank.
	To string
}

// A RecoverReport says what Recover has done.
type RecoverReport struct {
	Step       *int64       `json:"step,omitempty"` // of the snapshot
	Generation int64        `json:"generation"`
	Nodes      []NodeReport `json:"nodes"` // as they were found
	Files      int          `json:"files"` // brought back
	Blocks     int          `json:"blocks"`
	Kept       []tree.Name  `json:"kept,omitempty"`        // files that have changed and were left alone
	Replaced   []tree.Name  `json:"replaced,omitempty"`    // where files lie now in whose place others were recovered
	Left       []string     `json:"unrecovered,omitempty"` // files that could not be brought back, and why
	Notes      []string     `json:"notes,omitempty"`
	Traffic    Traffic      `json:"traffic"`
	Seconds    float64      `json:"seconds"`
}

// An IncompleteError says that not everything was brought back.
type IncompleteError struct{ what []string }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *IncompleteError) ExitCode() int { return 3 }

func (e *IncompleteError) Error() string {
	return "not everything is recovered: " + strings.Join(e.what, "; ")
}

// Incomplete returns an [*IncompleteError] where something could not be brought back.
func (r *RecoverReport) Incomplete() error {
	var what []string
	for _, n := range r.Nodes {
		if n.Status == Failing {
			what = append(what, n.Dir+" cannot be read: "+n.why)
		}
	}
	switch len(r.Left) {
	case 0:
	case 1:
		what = append(what, r.Left[0])
	default:
		what = append(what, fmt.Sprintf("%s; and %d more", r.Left[0], len(r.Left)-1))
	}
	if what == nil {
		return nil
	}
	return &IncompleteError{what}
}

// Recover brings back what is lost or damaged at any node, as it was protected: files with their names, modes and
// times, parity and manifests. It writes nothing at a node that is whole, and no file before its digests are right.
// Files that were changed since stay as they are unless o.Revert is set, and count as lost where others need them.
// Where a file takes the place of another, that is kept in .volley/replaced.
//
// What cannot be brought back, as too much else is damaged or changed, or a node cannot be
// written to, is in the report, and the rest is recovered.
//
// With Latest, Recover takes the newest snapshot. It takes an older one only where all nodes find that the newer ones
// are lost for certain, or were never protected: these it renames, and they are then no snapshots any more. It returns a
// [*NotLostError], and renames nothing, where the newest may come back and does not, as where a disk is full.
//
// It returns a *[TooManyError], at every rank, where more nodes are lost than the group tolerates, unless o.Beyond is
// set, and an [*InputError] for directories that are not those of a group; nothing has been written then. The error is
// a [*disk.BusyError] where another run uses a node. After an error, or the end of a process at any moment, calling it
// again completes it.
func Recover(ctx context.Context, t transport.Transport, dirs []string, o RecoverOptions) (*RecoverReport, error) {
	writes := !o.DryRun && o.To == ""
	latest := o.Roots && o.Step == Latest
	v := session.Verb{Name: "recover", Args: o, Access: store.Access{Writes: writes, Makes: writes}}
	if latest {
		v.Passed = map[int64]*session.LostError{}
	}
	for {
		r, err := run(ctx, t, dirs, o.Options, v, func(ctx context.Context, s *session.Session, around *surroundings) (*RecoverReport, error) {
			if !latest {
				return recoverGroup(ctx, s, o)
			}
			return recoverLatest(ctx, s, around, o, writes)
		})
		lost := new(session.LostError)
		if !errors.As(err, &lost) {
			return r, err
		}
		v.Passed[lost.Step] = lost
	}
}

// recoverLatest recovers the snapshot that was chosen, and sets newer ones aside when it is back.
func recoverLatest(ctx context.Context, s *session.Session, around *surroundings, o RecoverOptions, writes bool) (r *RecoverReport, err error) {
	if s.Manifest == nil && len(s.Key) == 0 && s.Complete(false) == nil && !slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Lost }) {
		r = &RecoverReport{Step: s.Taken, Notes: []string{session.StepName(*s.Taken) + " is at every node, and not protected: nothing was compared"}}
		return r, around.setAside(ctx, s, writes, &r.Notes)
	}
	if r, err = recoverGroup(ctx, s, o); err == nil {
		if err = r.Incomplete(); err != nil {
			err = s.Alike(ctx, err)
		}
	}
	switch {
	case err == nil:
		return r, around.setAside(ctx, s, writes, &r.Notes)
	case s.Agreed && !errors.As(err, new(*session.LostError)):
		err = &NotLostError{*s.Taken, err}
	}
	return nil, err
}

func recoverGroup(ctx context.Context, s *session.Session, o RecoverOptions) (_ *RecoverReport, err error) {
	start := time.Now()
	if s.Manifest == nil {
		return nil, s.Alike(ctx, s.Unprotected())
	}
	if o.To != "" {
		s.Out = map[int]bool{}
		for i, x := range s.States {
			if x.Lost || x.Failing != "" {
				s.Out[i], x.Lost, x.Failing, x.Unreachable = true, true, "", false
			}
		}
	}
	var elsewhere []string
	if o.To != "" && !o.DryRun {
		undo := disk.Unmake(s.Disk, o.To)
		defer func() {
			if err == nil {
				return
			}
			for _, n := range s.Nodes {
				if s.Out[n.Index] {
					n.Close()
				}
			}
			undo()
		}()
		if elsewhere, err = openOut(ctx, s, o.To); err != nil {
			return nil, err
		}
	}
	if !o.DryRun && o.To == "" {
		for _, n := range s.Nodes {
			if s.States[n.Index].Interrupted() {
				restore.Sweep(n)
			}
		}
	}
	r := &RecoverReport{Step: s.Taken, Generation: s.Generation, Traffic: erasure.NewTraffic(len(s.Nodes))}
	targets := map[int]*restore.Target{} // of nodes here that can be read
	defer restore.Discard(targets)
	found, err := surveyAll(ctx, s, &o, rebuildable(s) && !o.DryRun && o.To == "", targets, &r.Traffic)
	if err != nil {
		return nil, err
	}
	r.Blocks = len(found.rows)
	slog.DebugContext(ctx, "found what is missing", "blocks", r.Blocks, "repairs", len(found.repairs))
	r.Notes = slices.Concat(s.Notes(), elsewhere, noteTorn(s, found.conditions))
	for n, c := range found.conditions {
		r.Nodes = append(r.Nodes, NodeReport{Node: n, Dir: s.States[n].Dir, Status: c.Status(), Findings: c.Findings, why: c.Failing})
		for _, f := range c.Findings {
			if f.What == Changed && !o.Revert {
				r.Kept = append(r.Kept, tree.Name(tree.JoinPath(s.States[n].Dir, f.Path)))
			}
		}
	}
	left := make([][]string, len(s.Nodes))
	for i, n := range s.Nodes {
		if restores(s, n.Index) {
			left[i] = giveUp(s, n, found.conditions[n.Index], found.beyond)
			for _, f := range found.conditions[n.Index].Findings {
				if slices.Contains(found.conditions[n.Index].Hidden, f.Path) {
					left[i] = append(left[i], fmt.Sprintf("%s: %s: whether it is as it was nobody can tell, and nothing takes its place: make it readable, and recover again", n.Path(f.Path), f.Why))
				}
			}
		}
	}
	if o.DryRun {
		for i := range left {
			left[i] = escaped(left[i])
		}
		left, err = session.Exchange(ctx, s, left)
		r.Left = slices.Concat(left...)
	} else {
		err = restoreAll(ctx, s, r, found, targets, left)
	}
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

type survey struct {
	conditions []*content.Condition
	repairs    []blockRepair      // that have to run
	beyond     map[lostBlock]bool // what they do not bring back
	rows       map[int]bool       // of which something comes back, or has while the nodes were read
}

// surveyAll finds out what nodes lack. If it rebuilds and not all can come back, it starts over without rebuilding.
func surveyAll(ctx context.Context, s *session.Session, o *RecoverOptions, rebuilds bool, targets map[int]*restore.Target, traffic *erasure.Traffic) (*survey, error) {
	var err error
	found := &survey{rows: map[int]bool{}}
	if rebuilds {
		found.conditions, err = rebuild(ctx, s, o.Revert, targets, found.rows, traffic)
	} else {
		found.conditions, err = examineAll(ctx, s, 0, false, o.Revert)
	}
	if err != nil {
		return nil, err
	}
	if err := recoverable(s, found.conditions, o.Beyond); err != nil {
		return nil, s.Alike(ctx, s.Loss(found.conditions, err))
	}
	if found.repairs, found.beyond, err = planRepairs(s, found.conditions); err != nil {
		return nil, s.Alike(ctx, err)
	}
	if rebuilds && len(found.beyond) > 0 {
		restore.Discard(targets)
		return surveyAll(ctx, s, o, false, targets, traffic)
	}
	if err := beyondError(s, found); err != nil {
		return nil, s.Alike(ctx, err)
	}
	for _, x := range found.repairs {
		for _, row := range x.blocks.Rows {
			found.rows[row] = true
		}
	}
	return found, nil
}

// openOut gives nodes that are recovered elsewhere their new directories. One may be there, as far as an earlier run has
// come: the node is then as it is there.
func openOut(ctx context.Context, s *session.Session, to string) (notes []string, err error) {
	at := func(n int) string { return filepath.Join(to, fmt.Sprint("node.", n)) }
	for n := range s.K {
		if s.Out[n] {
			notes = append(notes, fmt.Sprintf("what %s had comes to %s", s.Name(n), at(n)))
		}
	}
	if err := s.Steady(ctx, func(context.Context) error {
		for _, n := range s.Nodes {
			if s.Out[n.Index] {
				n.Close()
				n.At, n.Given, n.Absent, n.Meta = at(n.Index), at(n.Index), "", ""
			}
		}
		return s.Apart()
	}); err != nil {
		return nil, err
	}
	states, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (*store.State, error) {
		was := s.States[n.Index]
		if !s.Out[n.Index] {
			return was, nil
		}
		if err := n.Open(s.Disk, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); err != nil {
			return nil, err
		}
		is := n.Load(s.Key, s.K)
		is.Dir, is.Name, is.Node = was.Dir, was.Name, is.In(s.K)
		h := is.Of(s.Current)
		if is.Lost || is.Interrupted() || h != nil && h.Node == n.Index {
			return is, nil
		}
		l, err := tree.Scan(n.Dir, false, nil)
		if err == nil && (len(is.Held) > 0 || !has(s.Members[n.Index], l)) {
			err = store.Inputf("%s has something else than an earlier recovery of this node: name another directory to recover to", n.At)
		}
		return is, err
	})
	if err == nil {
		s.States = states
	}
	return notes, err
}

// has reports whether nothing lies in a directory but what a record has there.
func has(x *Member, l *tree.Listing) bool {
	was := map[tree.Name]*tree.Entry{}
	for _, e := range x.Entries {
		was[e.Path] = e
	}
	return len(l.Bad) == 0 && !slices.ContainsFunc(l.Entries, func(e *tree.Entry) bool {
		o := was[e.Path]
		file := func(e *tree.Entry) bool { return e.Type == tree.TypeFile || e.Type == tree.TypeLink }
		return o == nil || file(o) != file(e) || !file(o) && o.Type != e.Type || o.Size != e.Size
	})
}

func restores(s *session.Session, n int) bool { return s.Out == nil || s.Out[n] }

// recoverable returns an error where a directory is not that of its node, or too many are lost.
func recoverable(s *session.Session, conditions []*content.Condition, beyond bool) error {
	few := &TooManyError{Tolerate: s.Manifest.Tolerate, Possible: s.Manifest.Layout == Full && s.Gone == nil}
	for n, c := range conditions {
		if c.Foreign {
			return store.Inputf("%s has other files than node %d of the group had, and nothing says that it is this node: give its own directory, or an empty one", s.Name(n), n)
		}
		if c.Lost || c.Failing != "" {
			few.Nodes = append(few.Nodes, s.Name(n))
		}
	}
	switch {
	case len(few.Nodes) > few.Tolerate && !beyond:
		return few
	case s.Gone != nil:
		var names []string
		for _, n := range s.Gone {
			names = append(names, s.Name(n))
		}
		if unread := s.UnreadRecords(); unread != nil {
			return store.Inputf("no node that can be read has the record of %s, and some cannot be: %s. Make them readable, and recover again", strings.Join(names, ", "), strings.Join(unread, "; "))
		}
		return store.Inputf("too much is lost: no node has the record of %s any more", strings.Join(names, ", "))
	}
	return nil
}

// restoreAll brings everything back, but for what is left of the nodes here.
func restoreAll(ctx context.Context, s *session.Session, r *RecoverReport, found *survey, targets map[int]*restore.Target, left [][]string) error {
	for _, n := range s.Nodes {
		if targets[n.Index] == nil && n.Dir != nil && found.conditions[n.Index].Failing == "" && restores(s, n.Index) {
			targets[n.Index] = newTarget(s, n, found.conditions[n.Index])
		}
	}
	each := func(f func(ctx context.Context, x *restore.Target) error) error {
		return s.Each(ctx, func(ctx context.Context, _ int, n *store.Node) error {
			x := targets[n.Index]
			if x == nil {
				return nil
			}
			return x.Try(ctx, func() error { return f(ctx, x) })
		})
	}
	if err := each(func(ctx context.Context, x *restore.Target) error { return x.Prepare(ctx) }); err != nil {
		return err
	}
	if err := runRepairs(ctx, s, found.repairs, targets, &r.Traffic); err != nil {
		return err
	}
	if err := each(func(_ context.Context, x *restore.Target) error { return x.Finish() }); err != nil {
		return err
	}
	if err := s.Steadied(ctx, found.conditions); err != nil {
		return err
	}
	type done struct {
		Back        Recovered
		Sent        int64
		Replaced    []tree.Name
		Left, Notes []string
		Complete    bool
	}
	// Everything that is to be written is there, at all nodes that are not left out.
	all, err := session.Collect(ctx, s, func(ctx context.Context, i int, n *store.Node) (done, error) {
		d, x := done{Sent: r.Traffic.Sent[i]}, targets[n.Index]
		if x == nil {
			d.Left, d.Complete = escaped(left[i]), found.conditions[n.Index].Failing == ""
			return d, nil
		}
		if err := x.Try(ctx, x.Commit); err != nil {
			return d, err
		}
		if x.Failed != nil {
			x.Left = []string{fmt.Sprintf("%s: nothing more is recovered here: %v", n.Given, x.Failed)}
		}
		d.Back, d.Replaced, d.Complete = x.Back, x.Replaced, x.Left == nil
		d.Left = escaped(slices.Concat(left[i], x.Blocked, x.Left))
		d.Notes = escaped(append(x.Notes, x.NotSet()...))
		return d, nil
	})
	if err != nil {
		return err
	}
	complete := true
	for n, d := range all {
		r.Files += d.Back.Files
		if d.Back != (Recovered{}) {
			r.Nodes[n].Recovered = &d.Back
		}
		r.Traffic.MostSent = max(r.Traffic.MostSent, d.Sent)
		r.Left = append(r.Left, d.Left...)
		r.Replaced = append(r.Replaced, d.Replaced...)
		r.Notes = append(r.Notes, d.Notes...)
		complete = complete && d.Complete
	}
	if !complete { // an earlier generation may be of use yet
		return nil
	}
	return s.Here(func(_ int, n *store.Node) error {
		if !restores(s, n.Index) {
			return nil
		}
		return n.Clean(s.Generation)
	})
}

// escaped returns texts in which paths may be any bytes as JSON can carry them.
func escaped(texts []string) []string {
	for i := range texts {
		texts[i] = printable.Text(texts[i])
	}
	return texts
}

// blockRepair is a repair of the rows in which the same symbols are bad.
type blockRepair struct {
	*erasure.Repair
	blocks content.Blocks
}

type lostBlock struct {
	content.Symbol
	row int
}

// planRepairs returns the repairs, of rows in which the same is bad together, and the blocks that do not come back.
func planRepairs(s *session.Session, conditions []*content.Condition) ([]blockRepair, map[lostBlock]bool, error) {
	m := s.Manifest
	c, err := erasure.CodeOf(m)
	if err != nil {
		return nil, nil, err
	}
	type pattern struct{ bad, wanted []content.Symbol }
	patterns := make([]pattern, m.Rows())
	mark := func(lists [][]int, x content.Symbol, wanted bool) {
		for chunk, rows := range lists {
			x.Index = chunk
			for _, row := range rows {
				p := &patterns[row]
				if wanted {
					p.wanted = append(p.wanted, x)
				} else {
					p.bad = append(p.bad, x)
				}
			}
		}
	}
	for n, x := range conditions {
		data, parity := content.Symbol{Node: n}, content.Symbol{Node: n, Parity: true}
		mark(x.Data, data, false)
		mark(x.Parity, parity, false)
		if x.Failing == "" && restores(s, n) {
			mark(x.Touched, data, true)
			mark(x.Parity, parity, true)
		}
	}
	rowsOf := map[string][]int{}
	var order []string
	for row, p := range patterns {
		if len(p.wanted) == 0 {
			continue
		}
		key := fmt.Sprint(p)
		if rowsOf[key] == nil {
			order = append(order, key)
		}
		rowsOf[key] = append(rowsOf[key], row)
	}
	var list []blockRepair
	beyond := map[lostBlock]bool{}
	for _, key := range order {
		rows := rowsOf[key]
		p := patterns[rows[0]]
		r, lost, err := c.Repairing(erasure.SetOf(p.bad), erasure.SetOf(p.wanted))
		if err != nil {
			return nil, nil, err
		}
		for _, x := range lost {
			for _, row := range rows {
				beyond[lostBlock{x, row}] = true
			}
		}
		if len(r.Problem.Codewords) > 0 {
			list = append(list, blockRepair{r, content.Blocks{M: m, Rows: rows}})
		}
	}
	return list, beyond, nil
}

// giveUp takes what cannot be brought back from what is to be, and returns it.
func giveUp(s *session.Session, n *store.Node, c *content.Condition, beyond map[lostBlock]bool) []string {
	if len(beyond) == 0 {
		return nil
	}
	m, x := s.Manifest, s.Members[n.Index]
	gone := map[tree.Name]bool{}
	files := tree.ExtentsOf(x.Entries)
	for _, g := range m.SegmentsOf(files) {
		if beyond[lostBlock{content.Symbol{Node: n.Index, Parity: false, Index: g.Chunk}, g.Row}] {
			gone[files[g.File].Path] = true
		}
	}
	for i := range x.Entries {
		if e := x.Entries[i]; e.Type == tree.TypeLink && gone[e.Target] {
			gone[e.Path] = true
		}
	}
	var left []string
	for x := range beyond {
		if x.Node == n.Index && x.Parity && c.Remake && c.Earlier { // it may be right, and the disk have failed to give it
			c.Remake = false
			left = append(left, fmt.Sprintf("%s: too many nodes are lost, damaged or changed to make all of it again: it stays as it is", n.Path(tree.Name(n.Generation(s.Generation).Path(store.ParityFile)))))
		}
	}
	c.Restore = slices.DeleteFunc(c.Restore, func(e *tree.Entry) bool {
		if gone[e.Path] {
			left = append(left, fmt.Sprintf("%s: too many nodes are lost, damaged or changed in some of its blocks", n.Path(e.Path)))
		}
		return gone[e.Path]
	})
	return left
}

// beyondError returns an error where data of a snapshot do not come back, and another snapshot may: nothing of it is written.
func beyondError(s *session.Session, found *survey) error {
	blocks := make([]int, s.K)
	for x := range found.beyond {
		if !x.Parity {
			blocks[x.Node]++
		}
	}
	if s.Passed == nil || slices.Max(blocks) == 0 {
		return nil
	}
	var list []string
	for n, count := range blocks {
		findings := found.conditions[n].Findings
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Why != "" })
		if i < 0 && count > 0 {
			i = slices.IndexFunc(findings, func(f Finding) bool { return !f.Harmless() })
		}
		what := ""
		if i >= 0 {
			what = fmt.Sprintf(", as %s is %s", findings[i].Path, findings[i].What)
			if why := findings[i].Why; why != "" {
				what += ": " + why
			}
		}
		if count > 0 || what != "" {
			list = append(list, fmt.Sprintf("%s lacks %s%s", s.Name(n), printable.Count(count, "block"), what))
		}
	}
	return s.Loss(found.conditions, &IncompleteError{[]string{"too many nodes are lost, damaged or changed in some blocks: " + strings.Join(list, "; ")}})
}

// runRepairs runs repairs, one after the other. What nobody is to write is thrown away.
func runRepairs(ctx context.Context, s *session.Session, list []blockRepair, targets map[int]*restore.Target, traffic *erasure.Traffic) error {
	sources := map[int]*content.Data{}
	parity := map[int]parityReader{}
	defer func() {
		for _, n := range s.Nodes {
			sources[n.Index].Close()
			parity[n.Index].Close()
		}
	}()
	for _, n := range s.Nodes {
		sources[n.Index] = content.NewData(n.Dir, s.Members[n.Index].Entries, true)
		parity[n.Index] = parityOf(n, s.Generation)
	}
	return runOn(ctx, s, list, func(x content.Symbol) io.ReaderAt {
		if x.Parity {
			return parity[x.Node]
		}
		return sources[x.Node]
	}, func(x content.Symbol, row int, block []byte) error {
		to := targets[x.Node]
		return to.Try(ctx, func() error { return to.Put(x, row, block) })
	}, traffic)
}

// runOn runs repairs on what is read of symbols here, and has put take the blocks that come back.
func runOn(ctx context.Context, s *session.Session, list []blockRepair, from func(content.Symbol) io.ReaderAt, put func(x content.Symbol, row int, block []byte) error, traffic *erasure.Traffic) error {
	m := s.Manifest
	for _, r := range list {
		for _, n := range s.Nodes {
			s.Tell(0, int64(len(r.Outputs[n.Index]))*r.blocks.Bytes())
		}
	}
	for _, r := range list {
		t, err := r.Run(ctx, s.Setting(), r.blocks, func(x content.Symbol) executor.Input {
			chunks := m.DataChunks
			if x.Parity {
				chunks = m.ParityChunks
			}
			return executor.Input{Reader: &content.BlockReader{Blocks: r.blocks, From: from(x), Chunk: x.Index, Chunks: chunks}}
		}, func(x content.Symbol) executor.Output {
			return executor.Output{Writer: &content.BlockWriter{Blocks: r.blocks, Take: func(row int, block []byte) error {
				s.Tell(int64(len(block)), 0)
				return put(x, row, block)
			}}}
		})
		if err != nil {
			return err
		}
		traffic.Add(t)
	}
	return nil
}

type parityReader interface {
	io.ReaderAt
	io.Closer
}

// parityOf returns the parity of a node; reading what cannot be opened, such as that of a lost node, fails.
func parityOf(n *store.Node, g int64) parityReader {
	f, err := n.OpenParity(g)
	if err != nil {
		return unreadable{err}
	}
	return f
}

type unreadable struct{ err error }

func (u unreadable) ReadAt([]byte, int64) (int, error) { return 0, u.err }

func (unreadable) Close() error { return nil }

// A noting reader notes the first thing that the disk does not give.
type noting struct {
	parityReader
	err error
}

func (r *noting) ReadAt(to []byte, at int64) (int, error) {
	n, err := r.parityReader.ReadAt(to, at)
	if r.err == nil && disk.Failed(err) {
		r.err = err
	}
	return n, err
}

func newTarget(s *session.Session, n *store.Node, c *content.Condition) *restore.Target {
	from := &restore.Origin{Current: s.Current, Manifest: s.Manifest, Text: s.Text, Run: s.Run}
	return restore.NewTarget(from, s.States[n.Index], s.Members[n.Index], s.Records[n.Index], n, c)
}
