package group

import (
	"fmt"
	"slices"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/plan"
)

// Layouts of parity.
const (
	Full    = "full"    // a coded packet for each node, as long as the longest node's data
	Striped = "striped" // R chunks of parity for each K-R of data
)

// Matrices of [Full].
const (
	Cauchy = "cauchy" // 1/(i + (K+j))
	FTI    = "fti"    // 1/(j + (K+i)), over GF(2^16): what FTI's level 3 stores
)

// mostByteNodes is how many nodes are coded over GF(2^8); more are over GF(2^16). mostNodes
// bounds the stripes, which are as many, and the manifest that all nodes store.
const (
	mostByteNodes = 128
	mostNodes     = 1024
)

// A symbol is a chunk of a node, as part of a codeword.
type symbol struct {
	node   int
	parity bool
	index  int // among the node's chunks of the kind
}

// A codeword is chunks that depend on each other: parity[j] is the sum of
// coefficient(i, j)·data[i]. Any len(data) of its symbols determine all.
type codeword struct {
	data, parity []symbol
	coefficient  func(i, j int) field.Element
}

// A code says what the parity of K nodes is, that may lose R.
type code struct {
	k, r         int
	layout       string
	field        field.Field
	matrix       matrix.Matrix // of Full
	data, parity int           // chunks of every node
	words        []codeword

	encoder *volley.Encoder // of Full, once it was asked for
	relay   plan.Plan       // of Striped
}

// copies returns how many nodes store the record of each, so that it is not lost while the
// parity could bring back what it speaks of.
func (c *code) copies() int {
	if c.layout == Full {
		return c.k/2 + 1
	}
	return c.r + 1
}

// encodes returns the encoder of layout full.
func (c *code) encodes(o *Options) (*volley.Encoder, error) {
	var err error
	if c.encoder == nil {
		c.encoder, err = volley.Compile(c.matrix, o.volleyOptions(c.field)...)
	}
	return c.encoder, err
}

// plan returns the plan that makes all parity, for chunks of so many bytes. The options are
// the same each time.
func (c *code) plan(o *Options, bytes int64) (plan.Plan, error) {
	if c.layout == Full {
		e, err := c.encodes(o)
		if err != nil {
			return nil, err
		}
		return e.Plan(max(1, bytes/int64(c.field.SymbolBytes())))
	}
	if c.relay == nil {
		p, err := algo.Relay(c.encoding(o.Ports))
		if err != nil {
			return nil, err
		}
		c.relay = p
	}
	return c.relay, nil
}

// newCode returns the code of a layout. It returns an error that says why a layout does
// not do for K and R.
func newCode(k, r int, layout, name string) (*code, error) {
	c := &code{k: k, r: r, layout: layout}
	switch {
	case k < 2:
		return nil, fmt.Errorf("a group of %d: want 2 nodes or more", k)
	case r < 1 || r >= k:
		return nil, fmt.Errorf("to tolerate the loss of %d of %d nodes: want 1 to %d", r, k, k-1)
	case layout == Full && 2*r > k:
		return nil, fmt.Errorf("layout full: every node lost takes its data and its parity along, so that %d of %d nodes are too many: want %d or fewer, or layout striped", r, k, k/2)
	case k > mostNodes:
		return nil, fmt.Errorf("a group of %d nodes: want %d or fewer, in several groups", k, mostNodes)
	}
	fieldName := "2^8"
	if k > mostByteNodes || name == FTI {
		fieldName = "2^16"
	}
	var err error
	if c.field, err = field.Parse(fieldName); err != nil {
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
		c.data, c.parity = 1, 1
		w := codeword{coefficient: c.matrix.At}
		for n := range k {
			w.data, w.parity = append(w.data, symbol{n, false, 0}), append(w.parity, symbol{n, true, 0})
		}
		c.words = []codeword{w}
	case layout == Striped && name == Cauchy:
		c.data, c.parity = k-r, r
		inverse := func(i, j int) field.Element { return c.field.Inv(field.Code(uint64(i) ^ uint64(k-r+j))) }
		for t := range k {
			w := codeword{coefficient: inverse}
			for j := range r {
				w.parity = append(w.parity, symbol{(t + j) % k, true, j})
			}
			for i := range k - r {
				w.data = append(w.data, symbol{(t + r + i) % k, false, i})
			}
			c.words = append(c.words, w)
		}
	case layout == Striped:
		return nil, fmt.Errorf("matrix %s: layout striped has cauchy; leave it out, or take layout full", name)
	default:
		return nil, fmt.Errorf("layout %q, matrix %q: want full or striped, and cauchy or fti", layout, name)
	}
	return c, nil
}

// encoding is the relay that makes all parity.
func (c *code) encoding(ports int) algo.RelayProblem {
	p := c.problem(ports)
	for i := range c.words {
		w := &c.words[i]
		var sum algo.Codeword
		for _, s := range w.data {
			sum.Sources = append(sum.Sources, algo.Place{Proc: s.node, Index: s.index})
		}
		for j, s := range w.parity {
			sum.Sinks = append(sum.Sinks, algo.Place{Proc: s.node, Index: s.index})
			var row []field.Element
			for i := range w.data {
				row = append(row, w.coefficient(i, j))
			}
			sum.Coefficients = append(sum.Coefficients, row)
		}
		p.Codewords = append(p.Codewords, sum)
	}
	for n := range c.k {
		p.Inputs[n], p.Outputs[n] = c.data, c.parity
	}
	return p
}

func (c *code) problem(ports int) algo.RelayProblem {
	return algo.RelayProblem{Field: c.field, Ports: ports, Inputs: make([]int, c.k), Outputs: make([]int, c.k)}
}

// repair is a relay that brings back symbols, and which its inputs and outputs are.
type repair struct {
	problem algo.RelayProblem
	inputs  [][]symbol // of each node
	outputs [][]symbol
}

// repairing returns the relay that brings back the wanted symbols from those that are not
// bad, and the wanted symbols of codewords that have lost more than they may.
func (c *code) repairing(bad, wanted map[symbol]bool, ports int) (_ *repair, lost []symbol, err error) {
	r := &repair{problem: c.problem(ports), inputs: make([][]symbol, c.k), outputs: make([][]symbol, c.k)}
	inputAt := map[symbol]int{}
	sources := 0
	for i := range c.words {
		w := &c.words[i]
		from, want, rows, err := c.solve(w, bad, wanted)
		if err != nil {
			return nil, nil, err
		}
		if rows == nil {
			lost = append(lost, want...)
			continue
		}
		sum := algo.Codeword{Coefficients: rows}
		for _, s := range from {
			at, ok := inputAt[s]
			if !ok {
				at = len(r.inputs[s.node])
				inputAt[s] = at
				r.inputs[s.node] = append(r.inputs[s.node], s)
			}
			sum.Sources = append(sum.Sources, algo.Place{Proc: s.node, Index: at})
		}
		for _, s := range want {
			sum.Sinks = append(sum.Sinks, algo.Place{Proc: s.node, Index: len(r.outputs[s.node])})
			r.outputs[s.node] = append(r.outputs[s.node], s)
		}
		r.problem.Codewords = append(r.problem.Codewords, sum)
		sources = max(sources, len(from))
	}
	for n := range c.k {
		r.problem.Inputs[n], r.problem.Outputs[n] = len(r.inputs[n]), len(r.outputs[n])
	}
	if len(c.words) == 1 { // its pieces keep all nodes busy, as stripes do
		r.problem.Pieces = min(sources, mostPieces)
	}
	return r, lost, nil
}

// mostPieces is how many pieces packets are cut into.
const mostPieces = 16

// solve returns the symbols from which the wanted ones of a codeword come back, these, and
// the coefficients: of each wanted one, by source; none where too many are bad.
func (c *code) solve(w *codeword, bad, wanted map[symbol]bool) (from, want []symbol, rows [][]field.Element, err error) {
	var missing []int // data
	for i, s := range w.data {
		if bad[s] {
			missing = append(missing, i)
		} else {
			from = append(from, s)
		}
		if wanted[s] {
			want = append(want, s)
		}
	}
	kept := len(from)
	var helping []int // parity
	for j, s := range w.parity {
		if !bad[s] && len(helping) < len(missing) {
			helping = append(helping, j)
			from = append(from, s)
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
	// Each helping parity less what is known of it is a sum of the missing data only.
	f := c.field
	inverse, err := matrix.DenseFunc(f, len(missing), len(missing), func(a, b int) field.Element {
		return w.coefficient(missing[a], helping[b])
	}).Inverse()
	if err != nil {
		return nil, nil, nil, err
	}
	index := map[symbol]int{}
	for n, s := range from {
		index[s] = n
	}
	// data[i] as coefficients of from.
	known := make([][]field.Element, len(w.data))
	for i, s := range w.data {
		known[i] = make([]field.Element, len(from))
		if n, ok := index[s]; ok {
			known[i][n] = field.One
		}
	}
	for a, i := range missing {
		for b, j := range helping {
			x := inverse.At(b, a)
			known[i][kept+b] = f.Add(known[i][kept+b], x)
			for o, s := range w.data {
				if !bad[s] {
					known[i][index[s]] = f.Sub(known[i][index[s]], f.Mul(x, w.coefficient(o, j)))
				}
			}
		}
	}
	for _, s := range want {
		row := make([]field.Element, len(from))
		if !s.parity {
			copy(row, known[slices.Index(w.data, s)])
		} else {
			j := slices.Index(w.parity, s)
			for i := range w.data {
				x := w.coefficient(i, j)
				for n := range row {
					row[n] = f.Add(row[n], f.Mul(x, known[i][n]))
				}
			}
		}
		rows = append(rows, row)
	}
	return from, want, rows, nil
}
