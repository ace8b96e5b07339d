// Package executor runs one processor's program of a plan over a transport, on
// packets of any length.
//
// It knows no algorithm: a program says what to combine, send and receive. Long
// packets are cut into segments, and the program runs once for each, so that
// the memory of a processor stays within a bound. What went over the wire is
// counted as it is sent; see [Traffic].
package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"volley/field"
	"volley/plan"
	"volley/transport"
)

// A Job is what one processor is to run. Plan, Bytes, Segment and the length of
// Header are the same at every processor.
type Job struct {
	Plan plan.Plan // one that passes plan.Validate

	// Bytes is the length of every packet: a multiple of the symbol size.
	Bytes int64

	// Segment is how many bytes of every packet are run at a time: a multiple of
	// the symbol size, and more than 0; see [SegmentBytes]. Where the plan cuts
	// packets into pieces, it cuts each segment into as many, at multiples of Align
	// bytes; 0 is the symbol size.
	Segment int64
	Align   int64

	// Inputs hold the processor's own packets, each of which is one input of the
	// program, or as many as there are pieces. One that ends before Bytes is padded
	// with zeros.
	Inputs []io.ReaderAt

	// Outputs receive the results, segment by segment in ascending order.
	Outputs []io.WriterAt

	// Header goes in front of the first message to each partner, and Check looks
	// at the ones that arrive. No header is sent when it is empty, and Check may
	// then be nil.
	Header []byte
	Check  func(src int, header []byte) error

	// Observe, unless nil, sees every segment's inputs and outputs, piece by piece,
	// before they are written, in ascending order. It may not keep or change them.
	Observe func(inputs, outputs [][]byte) error

	// Timeout bounds the wait for one message to come, or to be taken; 0 means
	// no bound.
	Timeout time.Duration
}

// Traffic counts what one processor did. A message that goes out in segments
// counts once.
type Traffic struct {
	Rounds       []plan.RoundTraffic // what it sent, by round
	Bytes        int64               // sent, without headers
	HeaderBytes  int64               // sent in headers
	MultiplyAdds int                 // per symbol
	Segments     int
}

// Block lengths for arithmetic: all combinations of a round are done for one
// block before the next, so that their common sources stay in the cache.
const blockBytes = 32 << 10

// SegmentBytes returns the longest segment for packets of the given bytes such
// that what a processor of p holds at a time, slots as [plan.MemorySlots] counts
// them, fits in memory bytes. It is a
// multiple of align, the unit in which packets may be cut, and no longer than
// the packet takes. It returns a *[MemoryError] when there is none.
func SegmentBytes(p plan.Plan, slotCount int, bytes, memory, align int64) (int64, error) {
	pieces := int64(p.Info().PieceCount())
	slots := int64(max(1, slotCount))
	each, whole := memory/slots, (bytes+pieces-1)/pieces // of a piece
	if each >= whole {
		return pieces * max(align, (whole+align-1)/align*align), nil
	}
	if each < align {
		return 0, &MemoryError{p.Info().Algorithm, memory, (slots + pieces - 1) / pieces, slots * min(align, whole)}
	}
	return pieces * (each / align * align), nil
}

// A MemoryError says that a bound on memory is too low for an algorithm.
type MemoryError struct {
	Algorithm string
	Memory    int64 // bytes of the bound
	Packets   int64 // that a processor holds at a time
	Least     int64 // bytes that would do
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("executor: %d bytes of memory: %s holds up to %d packets at a time and needs at least %d bytes",
		e.Memory, e.Algorithm, e.Packets, e.Least)
}

// ErrTimeout is wrapped by the error of a wait that took longer than
// [Job].Timeout.
var ErrTimeout = errors.New("timed out")

// Run runs the program of the processor with the transport's rank and returns
// what it sent. When it fails it aborts the group, so that no other processor
// waits for it; when another processor failed, the error is that one's
// *transport.AbortError. An error that a reader, a writer, Check or Observe
// returned is wrapped; where ctx ends, its cause is.
func Run(ctx context.Context, t transport.Transport, job Job) (*Traffic, error) {
	m, err := newMachine(t, job)
	if err == nil {
		err = m.run(ctx)
	}
	if err != nil {
		if aborted := new(transport.AbortError); errors.As(err, &aborted) {
			return nil, aborted
		}
		t.Abort(err)
		return nil, fmt.Errorf("processor %d: %w", t.Rank(), err)
	}
	return &m.traffic, nil
}

// machine is the memory of one processor and its program.
//
// Invariant: slots[s] is the machine's own buffer where s is in own, to be written only
// before anything of the segment is sent from it; else it is part of a message received,
// which belongs to its sender until release.
type machine struct {
	job     Job
	t       transport.Transport
	field   field.Field
	program *plan.Program
	rounds  []round
	final   []operation
	dog     watchdog
	pieces  int   // of a segment
	align   int64 // where it is cut

	slots   [][]byte    // the memory of the current segment, by slot
	own     []plan.Slot // the inputs and combinations: the slots not received
	buffers *arena      // what they are kept in
	scratch [][]byte    // sources of one operation
	inputs  [][]byte    // of the current segment, without padding
	outputs [][]byte

	traffic Traffic
}

// round is a plan.Round made ready: everything that is the same for every
// segment is worked out once.
type round struct {
	compute []operation
	sends   []send
	recvs   []recv
}

type send struct {
	plan.Send
	first   bool // to this partner: carries the header
	parts   [][]byte
	pending transport.Sending
}

type recv struct {
	plan.Recv
	slot    plan.Slot // of its first element
	first   bool      // from this partner: carries the header
	lengths []int
	pending transport.Receiving
	release func()
}

func newMachine(t transport.Transport, job Job) (*machine, error) {
	info := job.Plan.Info()
	if t.Size() != info.Processors {
		return nil, fmt.Errorf("a plan for %d processors on a transport of %d ranks", info.Processors, t.Size())
	}
	program, err := job.Plan.Program(t.Rank())
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	if len(job.Header) > 0 && job.Check == nil {
		return nil, errors.New("a header and no Check for those that arrive")
	}
	pieces := info.PieceCount()
	if len(job.Inputs)*pieces != program.Inputs || len(job.Outputs)*pieces != len(program.Outputs) {
		return nil, fmt.Errorf("%d inputs and %d outputs: the program has %d and %d",
			len(job.Inputs), len(job.Outputs), program.Inputs/pieces, len(program.Outputs)/pieces)
	}
	symbol := int64(info.Field.SymbolBytes())
	if job.Bytes < 0 || job.Bytes%symbol != 0 || job.Segment <= 0 || job.Segment%symbol != 0 {
		return nil, fmt.Errorf("packets of %d bytes in segments of %d: want multiples of the symbol size, %d", job.Bytes, job.Segment, symbol)
	}
	if job.Timeout < 0 {
		return nil, fmt.Errorf("timeout %v: want 0 or more", job.Timeout)
	}
	m := &machine{
		job: job, t: t, field: info.Field, program: program,
		pieces: pieces, align: max(job.Align, symbol),
		inputs: make([][]byte, program.Inputs), outputs: make([][]byte, len(program.Outputs)),
	}
	m.prepare()
	return m, nil
}

// prepare lays out the memory and counts the traffic of a segment.
func (m *machine) prepare() {
	slots := 0
	own := func() {
		m.own = append(m.own, slots)
		slots++
	}
	for range m.program.Inputs {
		own()
	}
	operations := func(list []plan.Combination) []operation {
		var ops []operation
		for _, c := range list {
			ops = append(ops, newOperation(slots, c))
			own()
		}
		return ops
	}
	m.traffic.MultiplyAdds = m.program.Terms()
	m.traffic.Rounds = make([]plan.RoundTraffic, len(m.program.Rounds))
	sentTo, heardFrom := map[int]bool{}, map[int]bool{}
	for _, r := range m.program.Rounds {
		ready := round{compute: operations(r.Compute)}
		for _, s := range r.Sends {
			first := len(m.job.Header) > 0 && !sentTo[s.Dst]
			sentTo[s.Dst] = true
			ready.sends = append(ready.sends, send{Send: s, first: first})
		}
		for _, v := range r.Recvs {
			first := len(m.job.Header) > 0 && !heardFrom[v.Src]
			heardFrom[v.Src] = true
			ready.recvs = append(ready.recvs, recv{Recv: v, slot: slots, first: first})
			slots += v.Count
		}
		m.rounds = append(m.rounds, ready)
	}
	m.final = operations(m.program.Compute)
	m.slots = make([][]byte, slots)
}

func (m *machine) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.dog = watchdog{timeout: m.job.Timeout, bark: cancel}
	m.buffers = newArena(len(m.own), m.element(min(m.job.Segment, m.job.Bytes)))
	for offset := int64(0); ; offset += m.job.Segment {
		n := min(m.job.Segment, m.job.Bytes-offset)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := m.segment(ctx, offset, int(n)); err != nil {
			return err
		}
		m.traffic.Segments++
		if offset+n >= m.job.Bytes {
			break
		}
	}
	m.buffers.free() // not after an error: others may be reading it
	return nil
}

// element returns the bytes of an element where n bytes of every packet are run.
func (m *machine) element(n int64) int {
	if m.pieces == 1 {
		return int(n)
	}
	each := (n + int64(m.pieces) - 1) / int64(m.pieces)
	return int((each + m.align - 1) / m.align * m.align)
}

// piece returns the part of a piece that lies in a segment of n bytes, and where in
// the segment it begins: the last pieces may be padding.
func (m *machine) piece(i, n int, element []byte) (part []byte, offset int64) {
	begin := min(n, i%m.pieces*len(element))
	return element[:min(len(element), n-begin)], int64(begin)
}

// segment runs the program on n bytes of every packet.
func (m *machine) segment(ctx context.Context, offset int64, segment int) error {
	n := m.element(int64(segment))
	for i, slot := range m.own {
		m.slots[slot] = m.buffers.buffer(i, n)
	}
	for i := range m.inputs {
		part, at := m.piece(i, segment, m.slots[i])
		clear(m.slots[i][len(part):])
		if err := readPadded(m.job.Inputs[i/m.pieces], part, offset+at); err != nil {
			return fmt.Errorf("read input %d: %w", i/m.pieces, err)
		}
		m.inputs[i] = part
	}
	for t := range m.rounds {
		if err := m.round(ctx, t, n, offset == 0); err != nil {
			return fmt.Errorf("round %d: %w", t, err)
		}
	}
	m.compute(m.final, n)

	for o, slot := range m.program.Outputs {
		m.outputs[o], _ = m.piece(o, segment, m.slots[slot])
	}
	if m.job.Observe != nil {
		if err := m.job.Observe(m.inputs, m.outputs); err != nil {
			return err
		}
	}
	for o, part := range m.outputs {
		_, at := m.piece(o, segment, m.slots[m.program.Outputs[o]])
		if _, err := m.job.Outputs[o/m.pieces].WriteAt(part, offset+at); err != nil {
			return fmt.Errorf("write output %d: %w", o/m.pieces, err)
		}
	}
	return m.settle(ctx)
}

// round computes, sends and receives. All of a round's messages are under way
// before the first is waited for, so that the ports work side by side.
func (m *machine) round(ctx context.Context, t, n int, firstSegment bool) error {
	r := &m.rounds[t]
	m.compute(r.compute, n)
	for i := range r.recvs {
		v := &r.recvs[i]
		v.lengths = v.lengths[:0]
		if v.first && firstSegment {
			v.lengths = append(v.lengths, len(m.job.Header))
		}
		for range v.Count {
			v.lengths = append(v.lengths, n)
		}
		v.pending = m.t.Receive(v.Src, transport.Tag{Round: t, Port: v.Port}, v.lengths)
	}
	for i := range r.sends {
		s := &r.sends[i]
		s.parts = s.parts[:0]
		if s.first && firstSegment {
			s.parts = append(s.parts, m.job.Header)
			m.traffic.HeaderBytes += int64(len(m.job.Header))
		}
		for _, slot := range s.Slots {
			s.parts = append(s.parts, m.slots[slot])
		}
		if firstSegment {
			m.traffic.Rounds[t].Messages++
			m.traffic.Rounds[t].Largest = max(m.traffic.Rounds[t].Largest, len(s.Slots))
		}
		m.traffic.Bytes += int64(len(s.Slots)) * int64(n)
		s.pending = m.t.Send(s.Dst, transport.Tag{Round: t, Port: s.Port}, s.parts)
	}
	for i := range r.recvs {
		v := &r.recvs[i]
		m.dog.watch()
		message, err := v.pending.Wait(ctx)
		if err = m.dog.rest(err); err != nil {
			return fmt.Errorf("receive from processor %d: %w", v.Src, err)
		}
		v.release = message.Release
		parts := message.Parts
		if v.first && firstSegment {
			if err := m.job.Check(v.Src, parts[0]); err != nil {
				return err
			}
			parts = parts[1:]
		}
		copy(m.slots[v.slot:], parts)
	}
	return nil
}

// settle ends a segment: it gives back what was received and waits until what
// was sent may be overwritten.
//
// It goes through the rounds backwards. What was received in round t may have
// been passed on, from where it lies, in later rounds only, and these have been
// waited for by then. As every processor does so, a wait for round t depends on
// waits for later rounds alone, so they all end.
func (m *machine) settle(ctx context.Context) error {
	for t := len(m.rounds) - 1; t >= 0; t-- {
		for _, v := range m.rounds[t].recvs {
			v.release()
		}
		for _, s := range m.rounds[t].sends {
			m.dog.watch()
			if err := m.dog.rest(s.pending.Wait(ctx)); err != nil {
				return fmt.Errorf("round %d: send to processor %d: %w", t, s.Dst, err)
			}
		}
	}
	return nil
}

// A watchdog bounds waits, one at a time: it ends their context when one takes
// too long. One timer serves all of them.
type watchdog struct {
	timeout time.Duration // 0: no bound
	bark    context.CancelCauseFunc
	timer   *time.Timer
}

// watch is called before a wait.
func (w *watchdog) watch() {
	switch {
	case w.timeout == 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.timeout, func() { w.bark(w.late()) })
	default:
		w.timer.Reset(w.timeout)
	}
}

// rest is called after a wait, with its error, and returns the error to go by:
// a wait that ended well, but too late, must not make the next one fail.
func (w *watchdog) rest(err error) error {
	if w.timer != nil && !w.timer.Stop() && err == nil {
		return w.late()
	}
	return err
}

func (w *watchdog) late() error { return fmt.Errorf("%w: nothing for %v", ErrTimeout, w.timeout) }

// readPadded fills p from offset on, with zeros after the end of the packet.
func readPadded(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(p[n:])
	return nil
}
