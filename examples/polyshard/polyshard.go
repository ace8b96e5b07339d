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
	"volley/matrix/matrices"
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
//
// Where blocks are invalid, the changes of the valid ones are encoded once more. Two further words
// of such codes show whether each proposer has sent the change of the block that was verified.
type Scheme struct {
	Field                   field.Field
	Shards, Nodes, Accounts int // K, N, accounts of a shard

	omega, alpha []field.Element
	code         *matrix.Dense   // K×N
	encoder      *volley.Encoder // by the code
	decoder      *Decoder        // of values at α
	options      []volley.Option
}

// NewScheme returns a scheme, whose encodes have the given options.
func NewScheme(f field.Field, shards, nodes, accounts int, options ...volley.Option) (*Scheme, error) {
	s := &Scheme{Field: f, Shards: shards, Nodes: nodes, Accounts: accounts, options: options}
	if nodes < s.terms() || accounts < 1 {
		return nil, fmt.Errorf("%d shards of %d accounts at %d nodes: want an account and %d nodes or more", shards, accounts, nodes, s.terms())
	}
	a, err := matrices.Spec{Family: "lagrange"}.Build(f, shards, nodes)
	if err != nil {
		return nil, err
	}
	sets := matrix.StructureOf(a).Points
	for i := range shards {
		s.omega = append(s.omega, sets[0].Points.At(i))
	}
	for w := range nodes {
		s.alpha = append(s.alpha, sets[1].Points.At(w))
	}
	s.code, s.decoder = matrix.DenseFunc(f, shards, nodes, a.At), NewDecoder(f, s.alpha)
	s.encoder, err = volley.NewEncoder(context.Background(), a, options...)
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

// changes returns what each account receives less what it pays, of a block, coded or not.
func (s *Scheme) changes(block []field.Element) []field.Element {
	pays, receives, _ := s.amounts(block)
	for i := range receives {
		receives[i] = s.Field.Sub(receives[i], pays[i])
	}
	return receives
}

// A Step is one in which a Byzantine node may say what is not so.
type Step int

const (
	SayVerdict Step = iota // one symbol
	SendChange             // once more as the proposer of a block, to be encoded: a symbol for each account
	SayChecks              // of the second encode, two symbols
)

// A Lie returns what a Byzantine node says in place of the truth.
type Lie func(step Step, truth []field.Element) []field.Element

// A Node is what one node stores and does.
type Node struct {
	State []field.Element // the coded shard, a symbol for each account
	Lie   Lie             // nil at an honest node
}

func (n *Node) says(step Step, truth ...field.Element) []field.Element {
	if n.Lie == nil {
		return truth
	}
	return n.Lie(step, truth)
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
	Liars     []int // nodes that have lied
	Rejected  []int // shards whose block is invalid, or whose proposer lied when it sent the change again
	Encoded   *volley.Report
	Reencoded *volley.Report // nil where no block is invalid
}

// A Beacon returns the public random numbers of a round, the same at all nodes. Nobody knows one before it is drawn.
type Beacon func(draw int) field.Element

// Round runs one round as the node of the transport's rank. block is that of shard i at node
// i < K, and nil at others.
//
// It returns ErrWrong where more nodes than s.Tolerates() are wrong.
func (s *Scheme) Round(ctx context.Context, t transport.Transport, node *Node, block []field.Element, beacon Beacon) (*Verdict, error) {
	f := s.Field
	packet, report, err := s.encoder.Encode(ctx, t, elements.Pack(f, block))
	if err != nil {
		return nil, fmt.Errorf("blocks: %w", err)
	}
	coded := elements.Unpack(f, packet)
	v := &Verdict{Encoded: report}
	verdicts, err := s.agree(ctx, t, node.says(SayVerdict, s.verify(node.State, coded, beacon(0))), s.terms(), v)
	if err != nil {
		return nil, fmt.Errorf("verdicts: %w", err)
	}
	for i, z := range s.omega {
		if !verdicts[0].at(f, z).IsZero() {
			v.Rejected = append(v.Rejected, i)
		}
	}

	change := s.changes(coded)
	if len(v.Rejected) > 0 {
		if block != nil {
			block = s.changes(block)
		}
		if change, err = s.reencode(ctx, t, node, block, change, beacon, v); err != nil {
			return nil, fmt.Errorf("changes of valid blocks: %w", err)
		}
	}
	for i := range change {
		node.State[i] = f.Add(node.State[i], change[i])
	}
	return v, nil
}

// agree exchanges some symbols of each node. It returns the polynomials, of so many terms each, whose
// values the symbols are, and adds the nodes where they are not to the liars.
func (s *Scheme) agree(ctx context.Context, t transport.Transport, mine []field.Element, terms int, v *Verdict) ([]polynomial, error) {
	f := s.Field
	said, err := collective.Allgatherv(ctx, t, elements.Pack(f, mine), 30*time.Second)
	if err != nil {
		return nil, err
	}
	polynomials := make([]polynomial, len(mine))
	for n := range polynomials {
		word := make([]field.Element, s.Nodes)
		for w, symbols := range said {
			if len(symbols) == len(mine)*f.SymbolBytes() && f.FirstInvalid(symbols) < 0 {
				word[w] = field.Symbol(f, symbols[n*f.SymbolBytes():]) // else it is 0, right or wrong
			}
		}
		p, liars, err := s.decoder.Decode(word, terms)
		if err != nil {
			return nil, err
		}
		polynomials[n] = p
		v.Liars = append(v.Liars, liars...)
	}
	slices.Sort(v.Liars)
	v.Liars = slices.Compact(v.Liars)
	return polynomials, nil
}

// reencode returns the node's coded change by the blocks that are valid. Their proposers send
// the changes once more, by one more all-to-all encode. mine is the change of the node's own
// block, and nil at a node that proposes none; coded is the coded change by all blocks.
//
// A proposer may send another change now. Each node knows the coded change by all blocks, from the
// first encode. A random combination of its symbols is a value of the polynomial that has the
// combinations of the true changes at ω. The same combination of what the second encode gave
// shows at ω what was sent. The block of a proposer that lied is rejected, too.
func (s *Scheme) reencode(ctx context.Context, t transport.Transport, node *Node, mine, coded []field.Element, beacon Beacon, v *Verdict) ([]field.Element, error) {
	f := s.Field
	for draw := 1; ; draw++ {
		var packet []byte
		if mine != nil {
			packet = elements.Pack(f, node.says(SendChange, mine...))
		}
		valid := matrix.DenseFunc(f, s.Shards, s.Nodes, func(i, w int) (zero field.Element) {
			if slices.Contains(v.Rejected, i) {
				return zero
			}
			return s.code.At(i, w)
		})
		packet, report, err := volley.Encode(ctx, t, valid, packet, s.options...)
		if err != nil {
			return nil, err
		}
		v.Reencoded = report
		change, rho := elements.Unpack(f, packet), beacon(draw)
		checks, err := s.agree(ctx, t, node.says(SayChecks, polynomial(coded).at(f, rho), polynomial(change).at(f, rho)), s.Shards, v)
		if err != nil {
			return nil, fmt.Errorf("checks: %w", err)
		}
		var lied []int
		for i, z := range s.omega {
			if !slices.Contains(v.Rejected, i) && checks[0].at(f, z) != checks[1].at(f, z) {
				lied = append(lied, i)
			}
		}
		if len(lied) == 0 {
			return change, nil
		}
		v.Rejected, v.Liars = append(v.Rejected, lied...), append(v.Liars, lied...)
		slices.Sort(v.Rejected)
	}
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
