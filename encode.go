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

// An Encoder computes one matrix on any packets, in any number of runs. It is
// safe for concurrent use: processors of one process share one.
type Encoder struct {
	matrix  matrix.Matrix
	problem *algo.Problem
	options options

	mu   sync.Mutex // guards what was chosen last, which the next run mostly uses again
	last choice
	by   sim.Model // the model that it was chosen by
}

// A choice is a plan and what is worth counting once for all processors.
type choice struct {
	plan.Plan
	slots int // plan.MemorySlots
}

// Compile returns an encoder for the matrix a. It returns an error when a has no rows or
// no columns, or an option is out of range.
func Compile(a matrix.Matrix, opts ...Option) (*Encoder, error) {
	o := defaults()
	for _, option := range opts {
		option(&o)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	problem := &algo.Problem{Matrix: a, Separate: o.separate, Ports: o.ports, Order: o.order, Limits: o.limits, Cut: o.cut}
	if err := problem.Prepare(); err != nil {
		return nil, err
	}
	if o.tau == nil {
		tau := TauPerByte * float64(a.Field().SymbolBytes())
		o.tau = &tau
	}
	return &Encoder{matrix: a, problem: problem, options: o}, nil
}

// Plan returns the plan that the encoder runs on packets of the given number of
// symbols, the longest of all, when the β and τ of processor 0 are its own. It
// returns an error when the algorithm cannot compute the matrix.
func (e *Encoder) Plan(symbols int64) (plan.Plan, error) {
	c, err := e.choose(e.model(symbols))
	return c.Plan, err
}

// model is the encoder's own, for packets of that many symbols.
func (e *Encoder) model(symbols int64) sim.Model {
	return sim.Model{Beta: e.options.beta, Tau: *e.options.tau, Gamma: e.options.gamma, Symbols: symbols}
}

func (e *Encoder) choose(m sim.Model) (choice, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last.Plan != nil && e.by == m {
		return e.last, nil
	}
	p, err := algo.Choose(e.options.algorithm, e.problem, m)
	if err != nil {
		return choice{}, err
	}
	e.last, e.by = choice{p, plan.MemorySlots(p)}, m
	return e.last, nil
}

// Encode runs an all-to-all encode as the processor with the transport's rank
// and returns its coded packet: with x_i the packet of processor i, padded with
// zero symbols to the longest of all, it is Σ_i A[i][rank]·x_i. Every processor of
// the transport calls it with an equal matrix and equal options.
//
// A packet is a vector of symbols as package field describes, so its length is
// a multiple of the symbol size. It is only read, and the coded packet is new
// memory. The errors are those of [Compile] and
// [Encoder.Run].
func Encode(ctx context.Context, t transport.Transport, a matrix.Matrix, packet []byte, opts ...Option) ([]byte, *Report, error) {
	e, err := Compile(a, opts...)
	if err != nil {
		t.Abort(err)
		return nil, nil, err
	}
	return e.Encode(ctx, t, packet)
}

// Encode is [Encoder.Run] on a packet in memory; it returns the coded packet in new
// memory.
func (e *Encoder) Encode(ctx context.Context, t transport.Transport, packet []byte) ([]byte, *Report, error) {
	var coded packetBuffer
	report, err := e.Run(ctx, t, bytes.NewReader(packet), int64(len(packet)), &coded)
	if err != nil {
		return nil, nil, err
	}
	return coded, report, nil
}

// packetBuffer is a packet that grows as it is written.
type packetBuffer []byte

func (b *packetBuffer) WriteAt(p []byte, offset int64) (int, error) {
	if need := int(offset) + len(p); need > len(*b) {
		*b = append(*b, make([]byte, need-len(*b))...)
	}
	return copy((*b)[offset:], p), nil
}

// Problem returns what the encoder plans for.
func (e *Encoder) Problem() *algo.Problem { return e.problem }

// Run runs an all-to-all encode as the processor with the transport's rank: it
// reads the processor's packet, the first size bytes of src, and writes its coded
// packet, which is as long as the longest packet of all processors, to dst, from
// offset 0 in ascending order. See [Encode] for what the packets are. Runs of one
// transport follow one another.
//
// Before any data moves the processors compare what they are about to do, and
// after it they check the result, see [WithCheck]: Run then returns nil only when
// the coded packets of all processors are right. A failure ends the run at all
// processors, and the transport is of no more use; nor is what has been written
// to dst. The error is, or wraps,
//
//   - a *[DisagreementError], at every processor, where they have different matrices
//     or options;
//   - a *verify.CheckError, where the processor's coded packet is wrong;
//   - a *[SymbolError], where its packet holds a symbol outside the field;
//   - a *[MemoryError], where [WithMemory] allows too little;
//   - the error of src or dst, io.ErrUnexpectedEOF where src ends before size;
//   - executor.ErrTimeout, where a message took longer than [WithTimeout] allows;
//   - the cause of ctx, where that ended;
//   - a *transport.AbortError, where another processor failed first: it names
//     that one and wraps its error, across processes perhaps only the text of it.
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
	if n := e.problem.Processors(); t.Size() != n {
		return nil, fmt.Errorf("volley: a matrix for %d processors on a transport of %d ranks", n, t.Size())
	}
	_, source := e.problem.Source(t.Rank())
	_, sink := e.problem.Sink(t.Rank())
	if !source && size > 0 {
		return nil, fmt.Errorf("volley: processor %d: a packet of %d bytes, and it is no source: want none", t.Rank(), size)
	}
	c := &control{t: t, timeout: e.options.timeout}
	shared, err := e.greet(ctx, c, size)
	if err != nil {
		return nil, err
	}
	chosen, err := e.choose(shared.model(symbol))
	if err != nil {
		return nil, err
	}
	p := chosen.Plan
	r := newReport(p, e.problem)
	r.PacketBytes = shared.Bytes
	r.SymbolsPerPacket = shared.Bytes / symbol
	hash := planHash(p, e.matrix, shared)
	r.PlanHash = hex.EncodeToString(hash)

	block := verify.BlockSymbols(r.SymbolsPerPacket, t.Size())
	most := shared.Bytes
	if p.Info().Pieces <= 1 { // pieces are short by themselves
		most = min(most, maxSegment)
	}
	segment, err := executor.SegmentBytes(p, chosen.slots, most, e.options.memory, int64(block)*symbol)
	if err != nil {
		return nil, err
	}
	job := executor.Job{
		Plan: p, Bytes: shared.Bytes, Segment: segment, Align: int64(block) * symbol,
		Header: hash,
		Check: func(src int, header []byte) error {
			if !bytes.Equal(header, hash) {
				return &DisagreementError{Processors: []int{src}, With: t.Rank(), In: []string{"plan"}}
			}
			return nil
		},
		Timeout: e.options.timeout,
	}
	if source {
		job.Inputs = []io.ReaderAt{&packetReader{f, src, size}}
	}
	if sink {
		job.Outputs = []io.WriterAt{dst}
	}
	var in, out *verify.Fingerprint
	if e.options.check {
		in = verify.NewFingerprint(f, shared.Seed, block)
		out = verify.NewFingerprint(f, shared.Seed, block)
		job.Observe = func(inputs, outputs [][]byte) error {
			for _, part := range inputs {
				in.Add(part)
			}
			for _, part := range outputs {
				if f.FirstInvalid(part) >= 0 { // came so over the wire; the arithmetic might not notice
					return &verify.CheckError{Proc: t.Rank()}
				}
				out.Add(part)
			}
			return nil
		}
	}
	traffic, err := executor.Run(ctx, t, job)
	if err != nil {
		return nil, err
	}
	r.count(traffic)
	if e.options.check {
		if err := e.check(ctx, c, p, in.Bytes(), out.Bytes()); err != nil {
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
const maxSegment = 256 << 10

// check encodes the fingerprints of all inputs, by another algorithm than the run's,
// and compares the result with the fingerprint of the output. It returns nil once
// all processors have found theirs right.
func (e *Encoder) check(ctx context.Context, c *control, p plan.Plan, in, out []byte) error {
	name := "bruck-allgather" // so that nobody else computes what a processor expects
	switch info := p.Info(); {
	case info.Processors >= manyProcessors && info.Algorithm != "universal":
		name = "universal"
	case info.Processors >= manyProcessors:
		name = "prepare-and-shoot"
	}
	other, err := algo.Lookup(name)
	if err != nil {
		return err
	}
	q, err := other.Compile(&obtained{e.matrix, e.problem, p}, p.Info().Ports)
	if err != nil {
		return err
	}
	want, err := c.run(ctx, q, 1, 1, in, len(in))
	if err != nil {
		return err
	}
	if !bytes.Equal(want[0], out) {
		return &verify.CheckError{Proc: c.t.Rank()}
	}
	return c.barrier(ctx) // who failed has aborted instead
}

// obtained is the square matrix whose column k is what processor k obtains from a
// plan: nothing, where it is no sink.
type obtained struct {
	matrix.Matrix
	problem *algo.Problem
	plan    plan.Plan
}

func (m *obtained) Rows() int { return m.problem.Processors() }
func (m *obtained) Cols() int { return m.problem.Processors() }

func (m *obtained) At(i, j int) field.Element {
	row, source := m.problem.Source(i)
	if _, sink := m.problem.Sink(j); !source || !sink {
		return field.Element{}
	}
	return m.Matrix.At(row, m.plan.Column(j, 0)/m.plan.Info().PieceCount())
}

// MemoryError says that the bound of [WithMemory] is too low for the algorithm.
type MemoryError = executor.MemoryError

// planHash identifies a run: two processors with equal hashes send each other
// what the other expects.
func planHash(p plan.Plan, a matrix.Matrix, g greeting) []byte {
	info := p.Info()
	h := sha256.New()
	fmt.Fprintf(h, "volley %d\nplan %d\nfield %s\nmatrix %s\nprocessors %d\nports %d\nalgorithm %s %s\nbytes %d\nbeta %d\ntau %x\ngamma %x\n",
		protocol, plan.Version, info.Field.Name(), a.ID(), info.Processors, info.Ports, info.Algorithm, info.Parameters, g.Bytes, g.Beta, g.Tau, g.Gamma)
	return h.Sum(nil)
}

// A SymbolError says that a packet holds a symbol that is no element of the
// field.
type SymbolError struct {
	Field  string        // its name
	Name   string        // of the file, where the reader of the packet has a method Name
	Offset int64         // of the first such symbol in the packet, in bytes
	Value  field.Element // what stands there
}

func (e *SymbolError) Error() string {
	where := "packet"
	if e.Name != "" {
		where = e.Name
	}
	return fmt.Sprintf("%s: symbol %v at byte %d is outside the field %s", where, e.Value, e.Offset, e.Field)
}

// packetReader reads a packet of size bytes and refuses symbols outside the field.
type packetReader struct {
	field field.Field
	src   io.ReaderAt
	size  int64
}

func (r *packetReader) ReadAt(p []byte, offset int64) (int, error) {
	left := max(0, r.size-offset)
	if left == 0 {
		return 0, io.EOF
	}
	var end error
	if left < int64(len(p)) {
		p, end = p[:left], io.EOF
	}
	n, err := r.src.ReadAt(p, offset)
	symbol := r.field.SymbolBytes()
	if i := r.field.FirstInvalid(p[:n/symbol*symbol]); i >= 0 {
		e := &SymbolError{Field: r.field.Name(), Offset: offset + int64(i*symbol), Value: field.Symbol(r.field, p[i*symbol:])}
		if named, ok := r.src.(interface{ Name() string }); ok {
			e.Name = named.Name()
		}
		return 0, e
	}
	if n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return n, fmt.Errorf("%d of %d bytes: %w", offset+int64(n), r.size, err)
	}
	return n, end
}
