package group

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"volley"
	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/group/internal/content"
	"volley/group/internal/store"
	solver "volley/internal/code"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/transport"
)

// A codeword's parity is its data times the matrix of the code. Any len(data) of its symbols determine all.
type codeword struct{ data, parity []content.Symbol }

// A code says what the parity of K nodes is, that may lose R.
type code struct {
	k, r         int
	layout       string
	field        field.Field
	matrix       matrix.Matrix // of every codeword
	data, parity int           // chunks of every node
	words        []codeword

	encoder *volley.Encoder // of Full, once parity was asked for
	made    *repair         // what makes all parity, once it was
	of      int64           // bytes of a chunk, for which Full has made
}

// making returns what makes all parity, for chunks of so many bytes. The setting is the same each time.
func (c *code) making(ctx context.Context, set *setting, bytes int64) (_ *repair, err error) {
	if c.made != nil && (c.layout == Striped || c.of == bytes) {
		return c.made, nil
	}
	if c.layout == Striped { // as if all parity were lost
		var parity []content.Symbol
		for _, w := range c.words {
			parity = append(parity, w.parity...)
		}
		r, _, err := c.repairing(setOf(parity), setOf(parity))
		if err == nil {
			r.problem.Pieces = 1 // stripes keep all nodes busy as they are
			c.made = r
		}
		return r, err
	}
	if c.encoder == nil {
		if c.encoder, err = volley.NewEncoder(c.matrix, volley.WithMemory(set.Memory), volley.WithTimeout(set.Timeout),
			volley.WithNetwork(set.Network), volley.WithGamma(set.Gamma)); err != nil {
			return nil, err
		}
	}
	r := new(repair)
	for n := range c.k {
		r.inputs, r.outputs = append(r.inputs, []content.Symbol{{Node: n, Parity: false, Index: 0}}), append(r.outputs, []content.Symbol{{Node: n, Parity: true, Index: 0}})
	}
	if r.plan, err = c.encoder.PlanContext(ctx, set.T, max(1, bytes/int64(c.field.SymbolBytes()))); err == nil {
		c.made, c.of = r, bytes
	}
	return r, err
}

func codeOf(m *Manifest) (*code, error) {
	return newCode(m.Nodes, m.Tolerate, m.Layout, m.Matrix)
}

// newCode returns the code of a layout. It returns an error that says why a layout does not do for K and R.
func newCode(k, r int, layout, name string) (*code, error) {
	c := &code{k: k, r: r, layout: layout}
	x, err := store.ShapeOf(k, r, layout, name)
	if err != nil {
		return nil, err
	}
	c.data, c.parity = x.Data, x.Parity
	if c.field, err = field.Parse(x.Field); err != nil {
		return nil, err
	}
	switch {
	case layout == Full && (name == Cauchy || name == FTI):
		if name == FTI {
			c.matrix, err = matrix.FTI(c.field, k)
		} else {
			c.matrix, err = matrix.Cauchy(c.field, k, k)
		}
		if err != nil {
			return nil, err
		}
		w := codeword{}
		for n := range k {
			w.data, w.parity = append(w.data, content.Symbol{Node: n, Parity: false, Index: 0}), append(w.parity, content.Symbol{Node: n, Parity: true, Index: 0})
		}
		c.words = []codeword{w}
	case layout == Striped && name == Cauchy:
		if c.matrix, err = matrix.Cauchy(c.field, k-r, r); err != nil {
			return nil, err
		}
		for t := range k {
			w := codeword{}
			for j := range r {
				w.parity = append(w.parity, content.Symbol{Node: (t + j) % k, Parity: true, Index: j})
			}
			for i := range k - r {
				w.data = append(w.data, content.Symbol{Node: (t + r + i) % k, Parity: false, Index: i})
			}
			c.words = append(c.words, w)
		}
	}
	return c, nil
}

// A repair is a plan that makes or brings back symbols, and which its inputs and outputs are.
type repair struct {
	plan    plan.Plan // nil: the relay of the problem, once it was asked for
	problem algo.RelayProblem
	inputs  [][]content.Symbol // of each node
	outputs [][]content.Symbol

	executable *executor.Executable // of the plan at this rank, once it was run
	slots      int
	cost       sim.Cost
}

// compile returns the plan of a repair of symbols of so many bytes, those of the first call: one
// message of a node after the other or, where that waits for the latency most of the time, all at once.
func (r *repair) compile(set *setting, bytes int64) (plan.Plan, error) {
	if r.plan != nil {
		return r.plan, nil
	}
	p := r.problem
	p.Pieces = int(max(1, min(int64(p.Pieces), bytes/leastPiece)))
	for {
		uncarried, err := r.relay(p, set, bytes)
		switch {
		case err != nil:
			return nil, err
		case r.plan != nil:
			return r.plan, nil
		case p.Pieces == 1:
			return nil, &InputError{Err: fmt.Errorf("the transport cannot carry the plan relay: %w", uncarried)}
		}
		p.Pieces = (p.Pieces + 1) / 2 // and about half of the rounds
	}
}

// relay sets the plan to the one of least time that is carried; or says why none is.
func (r *repair) relay(p algo.RelayProblem, set *setting, bytes int64) (uncarried, err error) {
	m := set.model(p.Field, bytes)
	least := time.Duration(math.MaxInt64)
	for _, p.Ports = range []int{1, max(1, len(p.Inputs)-1)} {
		q, err := algo.Relay(p)
		if err != nil {
			return nil, err
		}
		if uncarried = transport.LimitsOf(set.T).Carry(q.Info().Rounds(), q.Info().Ports); uncarried != nil {
			continue
		}
		cost := sim.Count(q)
		if t := m.Time(cost); t < least {
			r.plan, least = q, t
		}
		if 2*time.Duration(cost.C1)*set.Network.Latency < least || len(p.Inputs) > mostAtOnce {
			break
		}
	}
	return uncarried, nil
}

// mostAtOnce is the most nodes for which another plan is worth the time that it takes to make.
const mostAtOnce = 256

// leastPiece is how many bytes a message is worth having.
const leastPiece = 64 << 10

// repairing returns the relay that brings wanted symbols back from those not bad, and those that cannot come back.
func (c *code) repairing(bad, wanted map[content.Symbol]bool) (_ *repair, lost []content.Symbol, err error) {
	r := &repair{inputs: make([][]content.Symbol, c.k), outputs: make([][]content.Symbol, c.k)}
	r.problem = algo.RelayProblem{Field: c.field}
	places := map[content.Symbol]algo.Place{}
	place := func(s content.Symbol, of [][]content.Symbol) algo.Place {
		at, ok := places[s]
		if !ok {
			at = algo.Place{Proc: s.Node, Index: len(of[s.Node])}
			of[s.Node], places[s] = append(of[s.Node], s), at
		}
		return at
	}
	messages := 0              // of a piece
	helped := make([]int, c.k) // how often the parity of each node helps
	for i := range c.words {
		from, want, rows, err := c.solve(&c.words[i], bad, wanted, helped)
		if err != nil {
			return nil, nil, err
		}
		if rows == nil {
			lost = append(lost, want...)
			continue
		}
		sum := algo.Codeword{Coefficients: rows}
		for _, s := range from {
			sum.Sources = append(sum.Sources, place(s, r.inputs))
		}
		for _, s := range want {
			sum.Sinks = append(sum.Sinks, place(s, r.outputs))
		}
		r.problem.Codewords = append(r.problem.Codewords, sum)
		messages += len(from)
	}
	for n := range c.k {
		r.problem.Inputs, r.problem.Outputs = append(r.problem.Inputs, len(r.inputs[n])), append(r.problem.Outputs, len(r.outputs[n]))
	}
	// With many pieces all nodes lead as many, and results leave while others are gathered.
	r.problem.Pieces = min(mostPieces, mostLed*c.k/max(1, len(r.problem.Codewords)), mostMessages/max(1, messages))
	return r, lost, nil
}

const (
	mostLed      = 16      // pieces that a node leads
	mostPieces   = 256     // of a packet
	mostMessages = 1 << 18 // of a plan
)

// solve returns the symbols from which wanted ones of a codeword come, these, and the coefficients: of each wanted one,
// by source; none where too many are bad. Of the parity it takes that of nodes that have helped least, and counts it.
func (c *code) solve(w *codeword, bad, wanted map[content.Symbol]bool, helped []int) (from, want []content.Symbol, rows [][]field.Element, err error) {
	var kept, missing []int        // data
	at := map[content.Symbol]int{} // data that is kept: where in from
	for i, s := range w.data {
		if bad[s] {
			missing = append(missing, i)
		} else {
			at[s], kept, from = len(from), append(kept, i), append(from, s)
		}
		if wanted[s] {
			want = append(want, s)
		}
	}
	var helping []int // parity
	for j, s := range w.parity {
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
	if len(helping) < len(missing) {
		return nil, want, nil, nil
	}
	slices.SortStableFunc(helping, func(a, b int) int { return helped[w.parity[a].Node] - helped[w.parity[b].Node] })
	helping = helping[:len(missing)]
	for _, j := range helping {
		from = append(from, w.parity[j])
		helped[w.parity[j].Node]++
	}
	f := c.field
	solved, err := solver.Solve(c.matrix, kept, missing, helping)
	if err != nil {
		return nil, nil, nil, err
	}
	// add adds x times data[i] to a sum of from.
	add := func(to []field.Element, x field.Element, i int) {
		if n, ok := at[w.data[i]]; ok {
			to[n] = f.Add(to[n], x)
			return
		}
		a := slices.Index(missing, i)
		for n := range to {
			to[n] = f.Add(to[n], f.Mul(x, solved.At(n, a)))
		}
	}
	for _, s := range want {
		row := make([]field.Element, len(from))
		if !s.Parity {
			add(row, field.One, slices.Index(w.data, s))
		} else {
			for i := range w.data {
				add(row, c.matrix.At(i, slices.Index(w.parity, s)), i)
			}
		}
		rows = append(rows, row)
	}
	return from, want, rows, nil
}
