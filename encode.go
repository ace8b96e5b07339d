package volley

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/verify"
)

// An Encoder computes one matrix on any packets. It is safe for concurrent use:
// processors of one process share one.
type Encoder struct {
	matrix  matrix.Matrix
	options options

	mu    sync.Mutex
	plans map[sim.Model]plan.Plan // chosen so far
}

// Compile returns an encoder for the square matrix a. It returns an error when a
// is not square or an option is out of range.
func Compile(a matrix.Matrix, opts ...Option) (*Encoder, error) {
	o := defaults()
	for _, option := range opts {
		option(&o)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if a.Rows() != a.Cols() {
		return nil, fmt.Errorf("volley: matrix of %d rows and %d columns: an all-to-all encode needs a square one", a.Rows(), a.Cols())
	}
	if o.tau == nil {
		tau := TauPerByte * float64(a.Field().SymbolBytes())
		o.tau = &tau
	}
	return &Encoder{matrix: a, options: o, plans: map[sim.Model]plan.Plan{}}, nil
}

// Plan returns the plan that the encoder runs on packets of the given number of
// symbols.
func (e *Encoder) Plan(symbols int64) (plan.Plan, error) {
	return e.choose(sim.Model{Beta: e.options.beta, Tau: *e.options.tau, Symbols: symbols})
}

func (e *Encoder) choose(m sim.Model) (plan.Plan, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.plans[m]; ok {
		return p, nil
	}
	p, err := algo.Choose(e.options.algorithm, e.matrix, e.options.ports, m)
	if err != nil {
		return nil, err
	}
	e.plans[m] = p
	return p, nil
}

// Encode runs an all-to-all encode as the processor with the transport's rank
// and returns its coded packet: with x_i the packet of processor i, padded with
// zero symbols to the longest of all, it is Σ_i A[i][rank]·x_i. Every processor of
// the transport calls it with an equal matrix and equal options.
//
// A packet is a vector of symbols as package field describes, so its length is
// a multiple of the symbol size. The errors are those of [Compile] and
// [Encoder.Run].
func Encode(ctx context.Context, t transport.Transport, a matrix.Matrix, packet []byte, opts ...Option) ([]byte, *Report, error) {
	e, err := Compile(a, opts...)
	if err != nil {
		t.Abort(err)
		return nil, nil, err
	}
	var coded memory
	report, err := e.Run(ctx, t, bytes.NewReader(packet), int64(len(packet)), &coded)
	if err != nil {
		return nil, nil, err
	}
	return coded, report, nil
}

// memory is a packet that grows as it is written.
type memory []byte

func (m *memory) WriteAt(p []byte, offset int64) (int, error) {
	if need := int(offset) + len(p); need > len(*m) {
		*m = append(*m, make([]byte, need-len(*m))...)
	}
	return copy((*m)[offset:], p), nil
}

// Run runs an all-to-all encode as the processor with the transport's rank: it
// reads the processor's packet of size bytes from src and writes its coded
// packet, which is as long as the longest packet of all processors, to dst. See
// [Encode] for what the packets are.
//
// Before any data moves the processors compare what they are about to do; if
// they disagree, every one returns a *[DisagreementError]. After that they check
// the result (see [WithCheck]): Run returns nil only when the coded packets of
// all processors are right, a *verify.CheckError at a processor whose packet is
// wrong, and an *transport.AbortError where another processor failed. A symbol
// outside the field gives a *[SymbolError]. What has been written to dst when
// Run fails is of no use.
func (e *Encoder) Run(ctx context.Context, t transport.Transport, src io.ReaderAt, size int64, dst io.WriterAt) (*Report, error) {
	report, err := e.run(ctx, t, src, size, dst)
	if err != nil {
		if !errors.As(err, new(*transport.AbortError)) {
			t.Abort(err)
		}
		return nil, err
	}
	return report, nil
}

func (e *Encoder) run(ctx context.Context, t transport.Transport, src io.ReaderAt, size int64, dst io.WriterAt) (*Report, error) {
	start := time.Now()
	f := e.matrix.Field()
	symbol := int64(f.SymbolBytes())
	if size < 0 || size%symbol != 0 {
		return nil, fmt.Errorf("volley: processor %d: a packet of %d bytes: symbols of %s have %d bytes", t.Rank(), size, f.Name(), symbol)
	}
	if t.Size() != e.matrix.Rows() {
		return nil, fmt.Errorf("volley: a matrix for %d processors on a transport of %d ranks", e.matrix.Rows(), t.Size())
	}
	c := &control{t: t, timeout: e.options.timeout}
	shared, err := e.greet(ctx, c, size)
	if err != nil {
		return nil, err
	}
	p, err := e.choose(shared.model(symbol))
	if err != nil {
		return nil, err
	}
	r := newReport(p, e.matrix.ID())
	r.PacketBytes = shared.Bytes
	r.SymbolsPerPacket = shared.Bytes / symbol
	hash := planHash(p, e.matrix, shared)
	r.PlanHash = hex.EncodeToString(hash)

	block := int64(verify.BlockSymbols(r.SymbolsPerPacket)) * symbol
	segment, err := executor.SegmentBytes(p, min(shared.Bytes, maxSegment), e.options.memory, block)
	if err != nil {
		return nil, err
	}
	job := executor.Job{
		Plan: p, Bytes: shared.Bytes, Segment: segment,
		Inputs:  []io.ReaderAt{&checkedReader{f, src}},
		Outputs: []io.WriterAt{dst},
		Header:  hash,
		Check: func(src int, header []byte) error {
			if !bytes.Equal(header, hash) {
				return &DisagreementError{Processors: []int{src}, With: t.Rank(), In: []string{"plan"}}
			}
			return nil
		},
		Timeout: e.options.timeout,
	}
	var in, out *verify.Fingerprint
	if e.options.check {
		in = verify.NewFingerprint(f, shared.Seed, r.SymbolsPerPacket)
		out = verify.NewFingerprint(f, shared.Seed, r.SymbolsPerPacket)
		job.Observe = func(inputs, outputs [][]byte) error {
			in.Add(inputs[0])
			out.Add(outputs[0])
			return nil
		}
	}
	traffic, err := executor.Run(ctx, t, job)
	if err != nil {
		return nil, err
	}
	r.count(traffic)
	if e.options.check {
		if err := e.check(ctx, c, in.Bytes(), out.Bytes()); err != nil {
			return nil, err
		}
		r.Verified = true
	}
	r.ControlRounds += c.rounds
	r.ControlBytes += c.bytes
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// maxSegment bounds a segment below what memory would allow: past it, longer
// segments only push each other out of the caches.
const maxSegment = 1 << 20

// check encodes the fingerprints of all inputs, by a plan that shares nothing
// with the run's but the matrix, and compares the result with the fingerprint of
// the output. It returns nil once all processors have found theirs right.
func (e *Encoder) check(ctx context.Context, c *control, in, out []byte) error {
	a, err := algo.Lookup("bruck-allgather")
	if err != nil {
		return err
	}
	p, err := a.Compile(e.matrix, e.options.ports)
	if err != nil {
		return err
	}
	want, err := c.run(ctx, p, in)
	if err != nil {
		return err
	}
	if !bytes.Equal(want[0], out) {
		return &verify.CheckError{Proc: c.t.Rank()}
	}
	_, err = c.allgather(ctx, nil) // a barrier: who failed has aborted instead
	return err
}

// planHash identifies a run: two processors with equal hashes send each other
// what the other expects.
func planHash(p plan.Plan, a matrix.Matrix, g greeting) []byte {
	info := p.Info()
	h := sha256.New()
	fmt.Fprintf(h, "volley %d\nplan %d\nfield %s\nmatrix %s\nprocessors %d\nports %d\nalgorithm %s %s\nbytes %d\nbeta %d\ntau %x\n",
		protocol, plan.Version, info.Field.Name(), a.ID(), info.Processors, info.Ports, info.Algorithm, info.Parameters, g.Bytes, g.Beta, g.Tau)
	return h.Sum(nil)
}

// A SymbolError says that a packet holds a symbol that is no element of the
// field.
type SymbolError struct {
	Field  string
	Name   string // of the file, if the packet comes from one
	Offset int64  // in bytes
	Value  field.Element
}

func (e *SymbolError) Error() string {
	where := "packet"
	if e.Name != "" {
		where = e.Name
	}
	return fmt.Sprintf("%s: symbol %v at byte %d is outside the field %s", where, e.Value, e.Offset, e.Field)
}

// checkedReader refuses symbols outside the field.
type checkedReader struct {
	field field.Field
	io.ReaderAt
}

func (r *checkedReader) ReadAt(p []byte, offset int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, offset)
	symbol := r.field.SymbolBytes()
	if i := r.field.FirstInvalid(p[:n/symbol*symbol]); i >= 0 {
		e := &SymbolError{Field: r.field.Name(), Offset: offset + int64(i*symbol), Value: field.Symbol(r.field, p[i*symbol:])}
		if named, ok := r.ReaderAt.(interface{ Name() string }); ok {
			e.Name = named.Name()
		}
		return 0, e
	}
	return n, err
}
