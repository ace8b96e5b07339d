// Package erasure is the code of a group: which codewords the blocks of its nodes form, the plans that make parity and
// bring blocks back, what these cost, and a check of what was made.
package erasure

import (
	"context"
	"errors"
	"slices"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/protection"
	solver "volley/internal/code"
	"volley/matrix"
	"volley/plan"
	"volley/transport"
)

// A Codeword's parity is its data times the matrix of the code. Any len(data) of its symbols determine all.
type Codeword struct{ Data, Parity []content.Symbol }

// A Code is the code of K nodes that may lose R.
type Code struct {
	K            int
	Field        field.Field
	Matrix       matrix.Matrix // of every codeword
	Data, Parity int           // chunks of every node
	Words        []Codeword

	protect *Repair // makes all parity; nil until Making is called
}

// Making returns the repair that makes all parity.
func (c *Code) Making(ctx context.Context) (*Repair, error) {
	if c.protect != nil {
		return c.protect, nil
	}
	var parity []content.Symbol // as if all of it were lost
	for _, w := range c.Words {
		parity = append(parity, w.Parity...)
	}
	r, _, err := c.Repairing(ctx, SetOf(parity), SetOf(parity))
	if err == nil {
		r.Traffic.Pieces = 1 // stripes keep all nodes busy as they are
		c.protect = r
	}
	return r, err
}

func CodeOf(m *store.Manifest) (*Code, error) { return NewCode(m.Nodes, m.Tolerate) }

// NewCode returns the code of K nodes that may lose R. The error says why there is none.
func NewCode(k, r int) (*Code, error) {
	x, err := store.ShapeOf(k, r)
	if err != nil {
		return nil, err
	}
	c := &Code{K: k, Data: x.Data, Parity: x.Parity}
	if c.Field, err = field.Parse(x.Field); err != nil {
		return nil, err
	}
	if c.Matrix, err = matrix.Cauchy(c.Field, k-r, r); err != nil {
		return nil, err
	}
	for t := range k {
		w := Codeword{}
		for j := range r {
			w.Parity = append(w.Parity, content.Symbol{Node: (t + j) % k, Parity: true, Index: j})
		}
		for i := range k - r {
			w.Data = append(w.Data, content.Symbol{Node: (t + r + i) % k, Parity: false, Index: i})
		}
		c.Words = append(c.Words, w)
	}
	return c, nil
}

// A Repair is a plan that makes or restores symbols, with its inputs and outputs.
type Repair struct {
	Plan    plan.Plan // nil: none was asked for yet
	Traffic algo.Traffic
	Inputs  [][]content.Symbol // of each node
	Outputs [][]content.Symbol

	executable *executor.Executable // of the plan at this rank of so many, once it was run
	ranks      int
	sent       []int64 // elements, by node here
	slots      int
}

// prepare makes the plan ready for this rank, or for all nodes at a rank.
func (r *Repair) prepare(ctx context.Context, p plan.Plan, set, runs transport.Transport) (err error) {
	if r.executable != nil && r.ranks == runs.Size() {
		return nil
	}
	r.ranks, r.slots, r.sent = runs.Size(), plan.MemorySlots(p), nil
	for n, end := executor.Hosted(len(r.Inputs), set.Rank(), set.Size()); n < end; n++ {
		program, err := p.Program(n)
		if err != nil {
			return err
		}
		sent := 0
		for _, round := range program.Rounds {
			for _, message := range round.Sends {
				sent += len(message.Slots)
			}
		}
		r.sent = append(r.sent, int64(sent))
	}
	r.executable, err = executor.Prepare(ctx, p, runs.Rank(), runs.Size())
	return err
}

// compile returns the plan for symbols of so many bytes, those of the first call. A node sends its messages one after the
// other, or all at once if waiting for the latency takes most of the time.
func (r *Repair) compile(set *Environment, bytes int64) (plan.Plan, error) {
	if r.Plan != nil {
		return r.Plan, nil
	}
	t := r.Traffic
	t.Pieces = int(max(1, min(int64(t.Pieces), bytes/leastPiece)))
	p := &algo.Problem{Traffic: &t, Carry: transport.LimitsOf(set.T).Carry}
	err := p.Prepare()
	if err == nil {
		r.Plan, err = algo.Choose("relay", p, set.model(t.Field, bytes))
	}
	if errors.As(err, new(*transport.LimitsError)) {
		err = &protection.RefusedError{Err: err}
	}
	return r.Plan, err
}

// leastPiece is how many bytes a message is worth having.
const leastPiece = 64 << 10

// Repairing returns the relay that restores wanted symbols from good ones, and the symbols that it cannot restore.
func (c *Code) Repairing(ctx context.Context, bad, wanted map[content.Symbol]bool) (_ *Repair, lost []content.Symbol, err error) {
	r := &Repair{Inputs: make([][]content.Symbol, c.K), Outputs: make([][]content.Symbol, c.K)}
	r.Traffic = algo.Traffic{Field: c.Field}
	packets := map[content.Symbol]algo.Packet{}
	packet := func(s content.Symbol, lists [][]content.Symbol) algo.Packet {
		position, ok := packets[s]
		if !ok {
			position = algo.Packet{Proc: s.Node, Index: len(lists[s.Node])}
			lists[s.Node], packets[s] = append(lists[s.Node], s), position
		}
		return position
	}
	messages := 0              // of a piece
	helped := make([]int, c.K) // how often the parity of each node helps
	for i := range c.Words {
		sources, want, rows, err := c.solve(ctx, &c.Words[i], bad, wanted, helped)
		if err != nil {
			return nil, nil, err
		}
		if rows == nil {
			lost = append(lost, want...)
			continue
		}
		sum := algo.Codeword{Coefficients: rows}
		for _, s := range sources {
			sum.Sources = append(sum.Sources, packet(s, r.Inputs))
		}
		for _, s := range want {
			sum.Sinks = append(sum.Sinks, packet(s, r.Outputs))
		}
		r.Traffic.Codewords = append(r.Traffic.Codewords, sum)
		messages += len(sources)
	}
	for n := range c.K {
		r.Traffic.Inputs, r.Traffic.Outputs = append(r.Traffic.Inputs, len(r.Inputs[n])), append(r.Traffic.Outputs, len(r.Outputs[n]))
	}
	// With many pieces all nodes lead as many, and results leave while others are gathered.
	r.Traffic.Pieces = min(mostPieces, mostLed*c.K/max(1, len(r.Traffic.Codewords)), mostMessages/max(1, messages))
	return r, lost, nil
}

const (
	mostLed      = 16      // pieces that a node leads
	mostPieces   = 256     // of a packet
	mostMessages = 1 << 18 // of a plan
)

// solve returns the sources of the wanted symbols of a codeword, these symbols, and the coefficients of each by source:
// none if too many are bad. It prefers parity of nodes that have helped least, and counts it.
func (c *Code) solve(ctx context.Context, w *Codeword, bad, wanted map[content.Symbol]bool, helped []int) (sources, want []content.Symbol, rows [][]field.Element, err error) {
	var kept, missing []int                 // data
	sourceIndex := map[content.Symbol]int{} // position of kept data in sources
	for i, s := range w.Data {
		if bad[s] {
			missing = append(missing, i)
		} else {
			sourceIndex[s], kept, sources = len(sources), append(kept, i), append(sources, s)
		}
		if wanted[s] {
			want = append(want, s)
		}
	}
	var helping []int // parity
	for j, s := range w.Parity {
		if !bad[s] {
			helping = append(helping, j)
		}
		if wanted[s] {
			want = append(want, s)
		}
	}
	if len(want) == 0 {
		return nil, nil, nil, nil
	}
	slices.SortStableFunc(helping, func(a, b int) int { return helped[w.Parity[a].Node] - helped[w.Parity[b].Node] })
	used, solved, err := solver.Solve(ctx, c.Matrix, kept, missing, helping)
	if err != nil || len(used) < len(missing) {
		return nil, want, nil, err
	}
	for _, j := range used {
		sources = append(sources, w.Parity[j])
		helped[w.Parity[j].Node]++
	}
	f := c.Field
	// add adds x times data[i] to a sum of sources.
	add := func(sum []field.Element, x field.Element, i int) {
		if n, ok := sourceIndex[w.Data[i]]; ok {
			sum[n] = f.Add(sum[n], x)
			return
		}
		a := slices.Index(missing, i)
		for n := range sum {
			sum[n] = f.Add(sum[n], f.Mul(x, solved.At(n, a)))
		}
	}
	for _, s := range want {
		row := make([]field.Element, len(sources))
		if !s.Parity {
			add(row, field.One, slices.Index(w.Data, s))
		} else {
			for i := range w.Data {
				add(row, c.Matrix.At(i, slices.Index(w.Parity, s)), i)
			}
		}
		rows = append(rows, row)
	}
	return sources, want, rows, nil
}

// SetOf returns a set of symbols.
func SetOf(list []content.Symbol) map[content.Symbol]bool {
	set := map[content.Symbol]bool{}
	for _, x := range list {
		set[x] = true
	}
	return set
}
