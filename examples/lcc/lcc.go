package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"volley"
	"volley/examples/internal/elements"
	"volley/field"
	"volley/matrix"
	"volley/transport"
)

// A Scheme is Lagrange coded computing (Yu et al., AISTATS 2019) without a master.
//
// Shards X_0 … X_(K-1) are born at the first K of N = K·Groups processors. With u
// the polynomial of degree K-1 that has the value X_i at ω_i, processor w obtains
// the coded shard u(α_w) and computes f of it, f being a polynomial of some degree
// d in the symbols of a shard. So the results are values of f(u(z)), of degree
// d·(K-1), and as the result at ω_i is f(X_i), D = d·(K-1)+1 right ones determine
// what is wanted. Two more tell a wrong one. It does not matter which results these
// are: all others may be late.
type Scheme struct {
	Field  field.Field
	Shards int // K
	Groups int
	Degree int // d

	omega   matrix.Points
	alpha   []matrix.Points // of each group
	options []volley.Option
}

// NewScheme returns a scheme, whose encodes have the given options, volley.WithOrder
// not among them. It is an error where there are too few processors to tell a wrong
// result, or where the field has too few points.
func NewScheme(f field.Field, shards, groups, degree int, options ...volley.Option) (*Scheme, error) {
	if shards < 1 || groups < 1 || degree < 1 {
		return nil, fmt.Errorf("%d shards, %d groups, degree %d: want 1 or more", shards, groups, degree)
	}
	s := &Scheme{Field: f, Shards: shards, Groups: groups, Degree: degree, options: options}
	if s.Processors() < s.Need() {
		return nil, fmt.Errorf("%d groups of %d processors: %w", groups, shards, &TooFewError{Results: s.Processors(), Decode: s.results()})
	}
	var err error
	if s.omega, err = matrix.CosetPoints(f, shards); err != nil {
		return nil, err
	}
	for g := range groups {
		// K points are on at most K cosets, so sets that are K cosets apart are disjoint.
		points, err := matrix.ShiftedCosetPoints(f, shards, (1+g)*shards)
		if err != nil {
			return nil, err
		}
		s.alpha = append(s.alpha, points)
	}
	return s, nil
}

// Processors returns N.
func (s *Scheme) Processors() int { return s.Shards * s.Groups }

// results returns D, how many results determine all.
func (s *Scheme) results() int { return s.Degree*(s.Shards-1) + 1 }

// Need returns how many results are needed to decode, one of which may be wrong.
func (s *Scheme) Need() int { return s.results() + 2 }

// point returns α_w, for the result of processor w.
func (s *Scheme) point(w int) field.Element { return s.alpha[w/s.Shards].At(w % s.Shards) }

// A TooFewError says that there are too few results to decode.
type TooFewError struct {
	Results int
	Decode  int // how many determine all, if they are right
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("%d results: want %d, which is %d to decode and 2 to find a wrong one", e.Results, e.Decode+2, e.Decode)
}

// ErrLiars is returned where more than one result is wrong.
var ErrLiars = errors.New("more than one result is wrong")

// A Phase is one all-to-all encode of a computation.
type Phase struct {
	Name       string
	Processors int
	Report     *volley.Report
}

// Encode runs as one of all N processors and returns its coded shard. The first K
// have a shard each, of equal lengths; for others it is nil.
//
// K sources for N sinks are no square matrix. They would be with N-K rows of zeros,
// at the cost of a matrix of N rows without structure. What is done instead is what
// the paper of all-to-all encode does: shard i goes to processor i of each of the
// groups, and then each group, all at once, encodes for itself, by the square
// Lagrange matrix from ω to its own part of α.
func (s *Scheme) Encode(ctx context.Context, t transport.Transport, shard []byte) ([]byte, []Phase, error) {
	if t.Size() != s.Processors() {
		return nil, nil, fmt.Errorf("%d processors: want %d", t.Size(), s.Processors())
	}
	var phases []Phase
	g, i := t.Rank()/s.Shards, t.Rank()%s.Shards
	var holders, group []int
	for h := range s.Groups {
		holders = append(holders, h*s.Shards+i)
	}
	for j := range s.Shards {
		group = append(group, g*s.Shards+j)
	}

	// A broadcast is an encode as well: the first packet counts once for each.
	first := matrix.NewDense(s.Field, s.Groups, s.Groups)
	for h := range s.Groups {
		first.Set(0, h, field.One)
	}
	shard, err := s.encode(ctx, t, "broadcast", holders, first, shard, &phases)
	if err != nil {
		return nil, nil, err
	}
	a, err := matrix.Lagrange(s.omega, s.alpha[g])
	if err != nil {
		t.Abort(err)
		return nil, nil, err
	}
	coded, err := s.encode(ctx, t, "encode", group, a, shard, &phases)
	if err != nil {
		return nil, nil, err
	}
	return coded, phases, nil
}

// A Decoded is what a processor has in the end.
type Decoded struct {
	Shard int    // that Value is f of, or -1
	Value []byte // f(X_Shard), or nil
	Liar  int    // the processor whose result was wrong, or -1
}

// Decode runs as one of the processors that are present, in ascending order, with
// results in time; all of them agree on who they are, which is up to the system
// around, by a deadline for example. It returns for each shard at one of them f
// of it: at the processor where the shard was born if that is present and has not
// lied, else at some other.
//
// One result may be wrong, in whatever way; that is found and left out. A liar
// here is who computes something else than f and takes part in what follows with
// that. One that also garbles what it passes on makes the run fail, as Volley
// checks that; and one that plays both roles with different results is beyond
// this example. Two wrong results or more are noticed, unless they were agreed upon
// or there is no result beyond those needed: then it takes luck, see locate.
func (s *Scheme) Decode(ctx context.Context, t transport.Transport, result []byte, present []int) (*Decoded, []Phase, error) {
	if len(present) < s.Need() {
		return nil, nil, &TooFewError{Results: len(present), Decode: s.results()}
	}
	if err := s.checkPresent(present, t.Rank()); err != nil {
		t.Abort(err)
		return nil, nil, err
	}
	var phases []Phase
	liar, err := s.findLiar(ctx, t, result, present, &phases)
	if err != nil {
		return nil, nil, err
	}
	decoders := slices.DeleteFunc(slices.Clone(present), func(w int) bool { return w == liar })[:s.results()]
	decoded := &Decoded{Shard: -1, Liar: liar}
	position := slices.Index(decoders, t.Rank())
	if position < 0 {
		return decoded, phases, nil
	}

	// D values for K shards: the other D-K processors keep what they have, which is
	// a Lagrange matrix too, one whose sets of points have points in common.
	shards := s.assign(decoders)
	source, target := make([]field.Element, len(decoders)), make([]field.Element, len(decoders))
	for j, w := range decoders {
		source[j], target[j] = s.point(w), s.point(w)
		if shards[j] >= 0 {
			target[j] = s.omega.At(shards[j])
		}
	}
	a, err := elements.Lagrange(s.Field, source, target)
	if err != nil {
		t.Abort(err)
		return nil, nil, err
	}
	value, err := s.encode(ctx, t, "decode", decoders, a, result, &phases)
	if err != nil {
		return nil, nil, err
	}
	if decoded.Shard = shards[position]; decoded.Shard >= 0 {
		decoded.Value = value
	}
	return decoded, phases, nil
}

func (s *Scheme) checkPresent(present []int, rank int) error {
	for i, w := range present {
		if w < 0 || w >= s.Processors() || i > 0 && w <= present[i-1] {
			return fmt.Errorf("present processors %v: want numbers below %d, ascending", present, s.Processors())
		}
	}
	if !slices.Contains(present, rank) {
		return fmt.Errorf("processor %d is not among those present: %v", rank, present)
	}
	return nil
}

// assign returns which shard each of the decoders is to obtain f of, -1 for none.
func (s *Scheme) assign(decoders []int) []int {
	shards := make([]int, len(decoders))
	var missing []int // shards that were born elsewhere
	for i := range s.Shards {
		if !slices.Contains(decoders, i) {
			missing = append(missing, i)
		}
	}
	for j, w := range decoders {
		switch {
		case w < s.Shards:
			shards[j] = w
		case len(missing) > 0:
			shards[j], missing = missing[0], missing[1:]
		default:
			shards[j] = -1
		}
	}
	return shards
}

// findLiar returns which of the present has a wrong result, -1 if none has.
//
// Symbol i of all M right results is a word of a Reed–Solomon code: M values of a
// polynomial of degree below D. So is any linear combination of the symbols, and
// one with random coefficients is wrong where the result is. It is a symbol for
// each processor, not a packet, and the M-D >= 2 syndromes of that word name one
// wrong processor; they are sums over the processors, by the matrix of all ones.
//
// The coefficients are powers of a random ρ: a wrong result of W symbols passes for
// a right one with probability W/q. Nobody may know ρ before its result is fixed,
// so it is a sum of what all processors draw now.
func (s *Scheme) findLiar(ctx context.Context, t transport.Transport, result []byte, present []int, phases *[]Phase) (int, error) {
	f := s.Field
	ones := matrix.DenseFunc(f, len(present), len(present), func(_, _ int) field.Element { return field.One })
	sum := func(name string, mine []field.Element) ([]field.Element, error) {
		total, err := s.encode(ctx, t, name, present, ones, elements.Pack(f, mine), phases)
		return elements.Unpack(f, total), err
	}

	sampler := field.NewSampler(f)
	rho, err := sum("random", []field.Element{sampler.Draw(cryptoSource)})
	if err != nil {
		return -1, err
	}
	var mark field.Element
	for _, x := range elements.Unpack(f, result) {
		mark = f.Mul(f.Add(mark, x), rho[0])
	}

	// Σ_w v_w·α_w^r·y_w = 0 for values y_w of any polynomial of degree below M-1-r,
	// v_w = 1/Π_(l≠w) (α_w - α_l): it is the coefficient of z^(M-1) of what
	// interpolates α_w^r·y_w.
	w := t.Rank()
	v := field.One
	for _, l := range present {
		if l != w {
			v = f.Mul(v, f.Sub(s.point(w), s.point(l)))
		}
	}
	mine := make([]field.Element, len(present)-s.results())
	mine[0] = f.Mul(mark, f.Inv(v))
	for r := 1; r < len(mine); r++ {
		mine[r] = f.Mul(mine[r-1], s.point(w))
	}
	syndromes, err := sum("syndromes", mine)
	if err != nil {
		return -1, err
	}
	liar, err := s.locate(syndromes, present)
	if err != nil {
		t.Abort(err)
	}
	return liar, err
}

// locate returns the processor that two or more syndromes point to: an error e in
// the value at α_w alone makes syndrome r to e·v_w·α_w^r. Without errors they are 0.
//
// With M-D syndromes any two to M-D-1 wrong values are told from a single one.
// Beyond, two errors with no regard to each other look like one with probability
// M/q.
func (s *Scheme) locate(syndromes []field.Element, present []int) (int, error) {
	if !slices.ContainsFunc(syndromes, func(e field.Element) bool { return !e.IsZero() }) {
		return -1, nil
	}
	for _, w := range present {
		x, single := s.point(w), true
		for r := 1; r < len(syndromes); r++ {
			single = single && syndromes[r] == s.Field.Mul(x, syndromes[r-1])
		}
		if single {
			return w, nil
		}
	}
	return -1, ErrLiars
}

// encode runs an all-to-all encode among some of the ranks of t, this one with
// them, and adds it to the phases.
func (s *Scheme) encode(ctx context.Context, t transport.Transport, name string, ranks []int, a matrix.Matrix, packet []byte, phases *[]Phase) ([]byte, error) {
	coded, report, err := volley.Encode(ctx, transport.Subset(t, ranks), a, packet, s.options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	*phases = append(*phases, Phase{name, len(ranks), report})
	return coded, nil
}

func cryptoSource() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
