package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"volley"
	"volley/collective"
	"volley/examples/internal/elements"
	"volley/field"
	"volley/matrix"
	"volley/transport"
)

// Bits is how many bits an amount has. All coins of a shard are fewer than 2^Bits.
const Bits = 16

// A Scheme is a coded ledger: PolyShard (Li et al., 2018) with encoding and update by
// all-to-all encodes.
//
// Shard i has balances S_i and, in each round, a block X_i. No node stores a shard. With s
// the polynomial of degree K-1 that has the value S_i at ω_i, node w stores the coded
// shard s(α_w); and of the blocks it obtains x(α_w) in the same way. It verifies by a polynomial f of
// degree 2, f(S, X) = 0 for a valid block. So the verdicts of the nodes are the values of
// f(s(z), x(z)), of 2·(K-1)+1 terms, at the α_w: a Reed–Solomon code, whose decoder finds wrong
// verdicts, and the verdict f(S_i, X_i) of each shard.
type Scheme struct {
	Field                   field.Field
	Shards, Nodes, Accounts int // K, N, accounts of a shard

	omega, alpha []field.Element
	encoder      *volley.Encoder // K packets to N nodes
	decoder      *Decoder        // of values at α
	options      []volley.Option
}

// NewScheme returns a scheme, whose encodes have the given options.
func NewScheme(f field.Field, shards, nodes, accounts int, options ...volley.Option) (*Scheme, error) {
	s := &Scheme{Field: f, Shards: shards, Nodes: nodes, Accounts: accounts, options: options}
	if nodes < s.terms() || accounts < 1 {
		return nil, fmt.Errorf("%d shards of %d accounts at %d nodes: want an account and %d nodes or more", shards, accounts, nodes, s.terms())
	}
	a, err := matrix.Spec{Family: "lagrange"}.Build(f, shards, nodes)
	if err != nil {
		return nil, err
	}
	sets := matrix.PointSetsOf(a)
	for i := range shards {
		s.omega = append(s.omega, sets[0].Points.At(i))
	}
	for w := range nodes {
		s.alpha = append(s.alpha, sets[1].Points.At(w))
	}
	s.decoder = NewDecoder(f, s.alpha)
	s.encoder, err = volley.NewEncoder(a, options...)
	return s, err
}

// terms returns the terms of the polynomial of the verdicts.
func (s *Scheme) terms() int { return 2*(s.Shards-1) + 1 }

// Tolerates returns how many nodes may be wrong in a round.
func (s *Scheme) Tolerates() int { return s.decoder.Corrects(s.terms()) }

// blockSymbols is the length of a block: for each account the bits of what it pays, of what
// it receives and of what it keeps, lowest first.
func (s *Scheme) blockSymbols() int { return 3 * Bits * s.Accounts }

// amounts returns what each account pays, receives and keeps, by the bits of a block. It
// is linear, and so it is the same for coded blocks.
func (s *Scheme) amounts(block []field.Element) (pays, receives, keeps []field.Element) {
	f := s.Field
	var all []field.Element
	for bits := range slices.Chunk(block, Bits) {
		var sum field.Element
		for _, b := range slices.Backward(bits) {
			sum = f.Add(f.Add(sum, sum), b)
		}
		all = append(all, sum)
	}
	a := s.Accounts
	return all[:a], all[a : 2*a], all[2*a:]
}

// verify returns the verdict on a block, coded or not: a random combination, by the powers of
// rho, of values that are all 0 exactly if
//
//   - each bit is 0 or 1,
//   - each account keeps what it had, less what it pays,
//   - the shard's accounts together pay as much as they receive.
//
// It is 0 for an invalid block with a probability of at most the number of values over q.
func (s *Scheme) verify(state, block []field.Element, rho field.Element) field.Element {
	f := s.Field
	var verdict field.Element
	want := func(zero field.Element) { verdict = f.Add(f.Mul(verdict, rho), zero) }
	for _, b := range block {
		want(f.Sub(f.Mul(b, b), b))
	}
	pays, receives, keeps := s.amounts(block)
	var created field.Element
	for i := range state {
		want(f.Sub(f.Sub(state[i], pays[i]), keeps[i]))
		created = f.Add(created, f.Sub(receives[i], pays[i]))
	}
	want(created)
	return verdict
}

// A Node is what one node stores and does.
type Node struct {
	State []field.Element // the coded shard, a symbol for each account

	// Lie, unless nil, changes the verdict of a Byzantine node.
	Lie func(verdict field.Element) field.Element
}

// Genesis runs as the node of the transport's rank, before the first round. balances are
// those of shard i at node i < K, and nil at others.
func (s *Scheme) Genesis(ctx context.Context, t transport.Transport, balances []field.Element) (*Node, error) {
	coded, _, err := s.encoder.Encode(ctx, t, elements.Pack(s.Field, balances))
	if err != nil {
		return nil, err
	}
	return &Node{State: elements.Unpack(s.Field, coded)}, nil
}

// A Verdict is what all nodes know after a round.
type Verdict struct {
	Liars    []int // nodes whose verdict was wrong
	Rejected []int // shards whose block is invalid
	Encoded  *volley.Report
	Expelled *volley.Report // nil where no block is invalid
}

// Round runs one round as the node of the transport's rank. block is that of shard i at node
// i < K, and nil at others. rho is a public random number, the same at all nodes, which
// nobody knows before the blocks are encoded.
//
// It returns ErrWrong where more nodes than s.Tolerates() are wrong.
func (s *Scheme) Round(ctx context.Context, t transport.Transport, node *Node, block []field.Element, rho field.Element) (*Verdict, error) {
	f := s.Field
	packet, report, err := s.encoder.Encode(ctx, t, elements.Pack(f, block))
	if err != nil {
		return nil, fmt.Errorf("blocks: %w", err)
	}
	coded := elements.Unpack(f, packet)

	mine := s.verify(node.State, coded, rho)
	if node.Lie != nil {
		mine = node.Lie(mine)
	}
	said, err := collective.Allgatherv(ctx, t, elements.Pack(f, []field.Element{mine}), 30*time.Second)
	if err != nil {
		return nil, fmt.Errorf("verdicts: %w", err)
	}
	verdicts := make([]field.Element, s.Nodes)
	for w, symbol := range said {
		if len(symbol) == f.SymbolBytes() && f.FirstInvalid(symbol) < 0 {
			verdicts[w] = field.Symbol(f, symbol) // else it is 0, right or wrong
		}
	}
	v := &Verdict{Encoded: report}
	p, liars, err := s.decoder.Decode(verdicts, s.terms())
	if err != nil {
		return nil, fmt.Errorf("verdicts: %w", err)
	}
	v.Liars = liars
	for i, z := range s.omega {
		if !p.at(f, z).IsZero() {
			v.Rejected = append(v.Rejected, i)
		}
	}

	change := make([]field.Element, s.Accounts)
	pays, receives, _ := s.amounts(coded)
	for i := range change {
		change[i] = f.Sub(receives[i], pays[i])
	}
	without := make([]field.Element, s.Accounts)
	if len(v.Rejected) > 0 {
		if without, v.Expelled, err = s.expel(ctx, t, change, v); err != nil {
			return nil, fmt.Errorf("expel: %w", err)
		}
	}
	for i := range change {
		node.State[i] = f.Add(node.State[i], f.Sub(change[i], without[i]))
	}
	return v, nil
}

// expel returns the part of the node's coded change that is due to invalid blocks. It is one
// more all-to-all encode, from the changes of K nodes that have not lied: these determine the
// changes of all shards, and so the part of the invalid ones at every node. The shard's own word is
// not needed.
func (s *Scheme) expel(ctx context.Context, t transport.Transport, change []field.Element, v *Verdict) ([]field.Element, *volley.Report, error) {
	order := make([]int, s.Nodes) // the K nodes first
	for w := range order {
		order[w] = w
	}
	slices.SortStableFunc(order, func(a, b int) int { return lied(v, a) - lied(v, b) })
	honest, all := make([]field.Element, s.Shards), make([]field.Element, s.Nodes)
	for c, w := range order {
		if all[c] = s.alpha[w]; c < s.Shards {
			honest[c] = s.alpha[w]
		}
	}
	var invalid []field.Element
	for _, i := range v.Rejected {
		invalid = append(invalid, s.omega[i])
	}
	a, err := s.expulsion(honest, invalid, all)
	if err != nil {
		t.Abort(err)
		return nil, nil, err
	}
	var packet []byte
	if slices.Index(order, t.Rank()) < s.Shards {
		packet = elements.Pack(s.Field, change)
	}
	part, report, err := volley.Encode(ctx, transport.Subset(t, order), a, packet, s.options...)
	return elements.Unpack(s.Field, part), report, err
}

func lied(v *Verdict, w int) int {
	if slices.Contains(v.Liars, w) {
		return 1
	}
	return 0
}

// expulsion returns the matrix from a polynomial's values at K points to the values at other
// points of the polynomial that agrees with it at the invalid ω and is 0 at the others.
func (s *Scheme) expulsion(honest, invalid, all []field.Element) (matrix.Matrix, error) {
	lagrange := func(from, to []field.Element) (matrix.Matrix, error) {
		x, err := matrix.NewPoints(s.Field, from)
		if err != nil {
			return nil, err
		}
		y, err := matrix.NewPoints(s.Field, to)
		if err != nil {
			return nil, err
		}
		return matrix.Lagrange(x, y)
	}
	changes, err := lagrange(honest, invalid)
	if err != nil {
		return nil, err
	}
	coded, err := lagrange(s.omega, all)
	if err != nil {
		return nil, err
	}
	rows := matrix.DenseFunc(s.Field, len(invalid), len(all), func(i, c int) field.Element {
		return coded.At(slices.Index(s.omega, invalid[i]), c)
	})
	return matrix.Mul(changes, rows)
}

// Audit returns the balances of all shards from what the nodes say that they store, and the
// nodes that say it wrong: they may be (N-K)/2.
func (s *Scheme) Audit(states [][]field.Element) (balances [][]field.Element, wrong []int, err error) {
	balances = make([][]field.Element, s.Shards)
	for account := range s.Accounts {
		values := make([]field.Element, s.Nodes)
		for w, state := range states {
			values[w] = state[account]
		}
		p, liars, err := s.decoder.Decode(values, s.Shards)
		if err != nil {
			return nil, nil, fmt.Errorf("account %d: %w", account, err)
		}
		wrong = append(wrong, liars...)
		for i, z := range s.omega {
			balances[i] = append(balances[i], p.at(s.Field, z))
		}
	}
	slices.Sort(wrong)
	return balances, slices.Compact(wrong), nil
}
