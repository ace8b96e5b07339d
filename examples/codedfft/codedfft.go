package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/consensys/gnark-crypto/field/goldilocks"
	"github.com/consensys/gnark-crypto/field/goldilocks/fft"
	"github.com/consensys/gnark-crypto/utils"

	"volley"
	"volley/examples/internal/elements"
	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/transport"
)

// symbolBytes is the size of an element of goldilocks, little-endian, the order that
// Volley's symbols have.
const symbolBytes = 8

// A Transform is a distributed Fourier transform of N1·N2 elements of goldilocks, in which
// late workers are not waited for.
//
// With n = N2·i + j and k = k1 + N1·k2,
//
//	X[k] = Σ_j w^(N1·j·k2) · w^(j·k1) · Σ_i w^(N2·i·k1)·x[n], w of order N1·N2.
//
// Worker a of K holds the columns j of block a of K: a packet of N2/K vectors of N1
// elements. Step 1 transforms each vector. The workers multiply by w^(j·k1) and transpose, so
// that worker a has the k1 of block a, for all j. Step 2 transforms these N1/K vectors.
//
// Before each step R parity workers obtain combinations of the K packets, a systematic MDS
// code: the workers' packets are the values of polynomials of degree below K at ω_0 …
// ω_(K-1), the parity workers' the values at α_0 … α_(R-1). A step is the same linear
// map for every packet, so the results are values of polynomials in the same way, and K of
// the K+R results determine all.
type Transform struct {
	Workers, Parity int // K, R
	N1, N2          int // powers of two, multiples of K
	Options         []volley.Option

	points  []field.Element // ω, then α
	encoder *volley.Encoder // nil where R = 0
}

// NewTransform returns a transform, whose encodes have the given options.
func NewTransform(workers, parity, n1, n2 int, options ...volley.Option) (*Transform, error) {
	for _, n := range []int{n1, n2} {
		if n&(n-1) != 0 || workers < 1 || n%workers != 0 {
			return nil, fmt.Errorf("%d points and %d workers: want a power of two, and a divisor of it", n, workers)
		}
	}
	t := &Transform{Workers: workers, Parity: parity, N1: n1, N2: n2, Options: options}
	if parity == 0 {
		return t, nil
	}
	f, err := field.Parse("goldilocks")
	if err != nil {
		return nil, err
	}
	a, err := matrices.Spec{Family: "lagrange"}.Build(f, workers, parity)
	if err != nil {
		return nil, err
	}
	for _, set := range matrix.StructureOf(a).Points {
		for i := range set.Points.Len() {
			t.points = append(t.points, set.Points.At(i))
		}
	}
	t.encoder, err = volley.NewEncoder(context.Background(), a, append(slices.Clone(options), volley.WithSeparateSinks())...)
	return t, err
}

// A Step is what the K+R workers know of who is in time in one of the two steps. They
// share it in this process. On a network they would agree on it, for example by a consensus
// protocol.
type Step struct {
	delays  map[int]time.Duration // how much longer a worker takes than others
	results int                   // that are enough, K

	mutex    sync.Mutex
	present  []int
	complete chan struct{} // closed when there are enough
}

// NewStep returns a step of the transform with the given stragglers.
func (t *Transform) NewStep(delays map[int]time.Duration) *Step {
	return &Step{delays: delays, results: t.Workers, complete: make(chan struct{})}
}

// finish says that a worker has its result. That counts if it is one of the first K.
func (s *Step) finish(rank int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.present) == s.results {
		return
	}
	if s.present = append(s.present, rank); len(s.present) == s.results {
		slices.Sort(s.present)
		close(s.complete)
	}
}

// finished reports whether the others have finished without this worker.
func (s *Step) finished() bool {
	select {
	case <-s.complete:
		return true
	default:
		return false
	}
}

// A Run is what one worker did.
type Run struct {
	Result  []byte              // N1/K vectors of N2 elements; nil at a parity worker
	Encoded [2]*volley.Report   // of the steps
	Decoded [2][]*volley.Report // empty where no worker was late, or this one took no part
}

// Run runs as the worker of the transport's rank; the parity workers come last. packet is
// the worker's columns, N2/K vectors of N1 elements each, and nil at a parity worker.
// steps are the two steps, the same at all workers.
func (t *Transform) Run(ctx context.Context, tr transport.Transport, packet []byte, steps [2]*Step) (run Run, err error) {
	if tr.Size() != t.Workers+t.Parity {
		return run, fmt.Errorf("%d ranks: want %d", tr.Size(), t.Workers+t.Parity)
	}
	if packet, err = t.step(ctx, tr, packet, t.N1, 0, steps[0], &run); err != nil {
		return run, err
	}
	if tr.Rank() < t.Workers { // parity workers have nothing to transpose
		if packet, err = t.transpose(ctx, tr, t.twiddle(tr.Rank(), packet)); err != nil {
			return run, err
		}
	}
	run.Result, err = t.step(ctx, tr, packet, t.N2, 1, steps[1], &run)
	return run, err
}

// step encodes, transforms vectors of n elements each, and decodes the packets of workers
// that are late. A late worker ends its step when K others have finished, and obtains its
// result from them.
func (t *Transform) step(ctx context.Context, tr transport.Transport, packet []byte, n, number int, s *Step, run *Run) ([]byte, error) {
	rank := tr.Rank()
	if t.encoder != nil {
		parity, report, err := t.encoder.Encode(ctx, tr, packet)
		if err != nil {
			return nil, fmt.Errorf("encode before step %d: %w", number+1, err)
		}
		if run.Encoded[number] = report; rank >= t.Workers {
			packet = parity
		}
	}

	select {
	case <-time.After(s.delays[rank]):
	case <-s.complete:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	result := make([]byte, 0, len(packet))
	domain := fft.NewDomain(uint64(n), fft.WithCache())
	for ; len(packet) > 0 && !s.finished(); packet = packet[n*symbolBytes:] {
		v := elementsOf(packet[:n*symbolBytes])
		domain.FFT(v, fft.DIF, fft.WithNbTasks(1))
		utils.BitReverse(v)
		result = appendElements(result, v)
	}
	if len(packet) == 0 {
		s.finish(rank)
	}
	select {
	case <-s.complete:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	var late []int
	for w := range t.Workers {
		if !slices.Contains(s.present, w) {
			late = append(late, w)
		}
	}
	if position := slices.Index(append(slices.Clone(s.present), late...), rank); len(late) > 0 && position >= 0 {
		decoded, report, err := t.decode(ctx, tr, result, s.present, late)
		if err != nil {
			return nil, fmt.Errorf("decode after step %d: %w", number+1, err)
		}
		if run.Decoded[number] = []*volley.Report{report}; position >= t.Workers {
			result = decoded
		}
	}
	if rank >= t.Workers {
		return nil, nil
	}
	return result, nil
}

// decode runs an all-to-all encode with the K workers that are present as sources and those
// that are late as sinks: from the points of the ones to the points of the others.
func (t *Transform) decode(ctx context.Context, tr transport.Transport, result []byte, present, late []int) ([]byte, *volley.Report, error) {
	a, err := t.decoding(present, late)
	if err != nil {
		tr.Abort(err)
		return nil, nil, err
	}
	ranks := append(slices.Clone(present), late...)
	if !slices.Contains(present, tr.Rank()) {
		result = nil // a part of it, perhaps
	}
	return volley.Encode(ctx, transport.Subset(tr, ranks), a, result, append(slices.Clone(t.Options), volley.WithSeparateSinks())...)
}

func (t *Transform) decoding(present, late []int) (matrix.Matrix, error) {
	points := func(workers []int) (list []field.Element) {
		for _, w := range workers {
			list = append(list, t.points[w])
		}
		return list
	}
	return elements.Lagrange(t.encoder.Problem().Matrix.Field(), points(present), points(late))
}

// twiddle multiplies the element k1 of column j by w^(j·k1). The worker has the columns
// of its block.
func (t *Transform) twiddle(rank int, packet []byte) []byte {
	columns := t.N2 / t.Workers
	w := fft.NewDomain(uint64(t.N1*t.N2), fft.WithoutPrecompute()).Generator
	v := elementsOf(packet)
	for c := range columns {
		var root, power goldilocks.Element
		root.Exp(w, big.NewInt(int64(rank*columns+c)))
		power.SetOne()
		for k1 := range t.N1 {
			v[c*t.N1+k1].Mul(&v[c*t.N1+k1], &power)
			power.Mul(&power, &root)
		}
	}
	return appendElements(nil, v)
}

// transpose sends to each worker its rows of the packet, K-1 messages of 1/K of a packet,
// and returns the rows of this worker, N1/K vectors of N2 elements.
func (t *Transform) transpose(ctx context.Context, tr transport.Transport, packet []byte) ([]byte, error) {
	rows, columns := t.N1/t.Workers, t.N2/t.Workers
	q := tr.NewQueue()
	parts := make([][]byte, t.Workers) // from each worker: its columns, of rows each
	posted := 0
	for w := range t.Workers {
		var mine []byte
		for c := range columns {
			first := c*t.N1 + w*rows
			mine = append(mine, packet[first*symbolBytes:(first+rows)*symbolBytes]...)
		}
		if w == tr.Rank() {
			parts[w] = mine
			continue
		}
		parts[w] = make([]byte, len(mine))
		tag := transport.Tag{Round: transport.ControlRounds}
		q.Post(&transport.Transfer{Rank: w, Tag: tag, Receive: true, Parts: [][]byte{parts[w]}},
			&transport.Transfer{Rank: w, Tag: tag, Parts: [][]byte{mine}})
		posted += 2
	}
	for range posted {
		if _, err := q.Wait(ctx); err != nil {
			return nil, fmt.Errorf("transpose: %w", err)
		}
	}
	result := make([]byte, 0, len(packet))
	for r := range rows {
		for _, part := range parts {
			for c := range columns {
				offset := (c*rows + r) * symbolBytes
				result = append(result, part[offset:offset+symbolBytes]...)
			}
		}
	}
	return result, nil
}

func elementsOf(packet []byte) []goldilocks.Element {
	v := make([]goldilocks.Element, len(packet)/symbolBytes)
	for i := range v {
		v[i].SetUint64(binary.LittleEndian.Uint64(packet[i*symbolBytes:]))
	}
	return v
}

func appendElements(packet []byte, v []goldilocks.Element) []byte {
	for i := range v {
		packet = binary.LittleEndian.AppendUint64(packet, v[i].Uint64())
	}
	return packet
}
