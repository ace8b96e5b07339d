// Package executor runs the programs of a plan over a transport, on packets of any
// length.
//
// It knows no algorithm: a program says what to combine, send and receive. [Compile]
// makes the programs of all processors that live at one rank ready; [Run] runs them.
// Long packets are cut into segments, and the programs run once for each, so that
// the memory of a processor stays within a bound. At one rank the next segment is read and
// the one before written while one is coded; at several, two segments are under way, and
// one is coded while the other waits for messages. What processors send each other
// is counted, also where they live at one rank; see [Traffic].
package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"volley/plan"
	"volley/trace"
	"volley/transport"
)

// A Job is what one rank is to run. Bytes, Segment, Ahead and the length of Header are
// the same at every rank, and so is the plan of Part.
type Job struct {
	Part *Part // of this rank

	// Bytes is the length of every packet: a multiple of the symbol size.
	Bytes int64

	// Segment is how many bytes of every packet are run at a time: a multiple of
	// the symbol size, and more than 0; see [SegmentBytes]. Where the plan cuts
	// packets into pieces, it cuts each segment into as many, at multiples of Align
	// bytes; 0 is the symbol size.
	Segment int64
	Align   int64

	// Ahead lets two segments be under way. At one rank the next is read, and the last
	// one written, while one is computed; it takes memory for one more segment of each
	// input and output. At several, one is computed while the other waits for messages;
	// it takes memory for two segments of everything. The messages of every other segment
	// then have tags of rounds that follow those of the plan.
	Ahead bool

	// Inputs hold the packets of the processors of the rank, one after the other, each
	// of which is one input of its program, or as many as there are pieces. One that
	// ends before Bytes is padded with zeros.
	Inputs []Input

	// Outputs receive the results in the same order, segment by segment in ascending
	// order, while inputs are read.
	Outputs []Output

	// Header goes in front of the first message to each rank, and Check looks
	// at the ones that arrive. No header is sent when it is empty, and Check may
	// then be nil.
	Header []byte
	Check  func(rank int, header []byte) error

	// Observe, unless nil, sees every segment's inputs and outputs of a processor, piece
	// by piece, before they are written, in ascending order. It may not keep or change
	// them. It is called for several processors at a time.
	Observe func(proc int, inputs, outputs [][]byte) error

	// Timeout bounds the wait for one message to come, or to be taken; 0 means
	// no bound.
	Timeout time.Duration

	// Trace, unless nil, records what the rank does when.
	Trace *trace.Recorder
}

// An Input is a packet to read: in memory, or behind a reader.
type Input struct {
	Memory []byte      // the packet, which is used where it lies
	Reader io.ReaderAt // of the packet, in place of Memory

	// Check, unless nil, sees every part of the packet before it is used. An error ends
	// the run.
	Check func(part []byte, offset int64) error
}

// An Output is where a result goes: to memory, or to a writer.
type Output struct {
	Memory []byte      // of at least [Job].Bytes; the result is computed where it is to lie
	Writer io.WriterAt // in place of Memory
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

// ErrTimeout is wrapped by the error of a wait that took longer than
// [Job].Timeout.
var ErrTimeout = errors.New("timed out")

// Run runs the programs of the processors at the transport's rank and returns
// what they sent, in order. When it fails it aborts the group, so that no other rank
// waits for it; when another rank failed, the error is that one's
// *transport.AbortError. An error that a reader, a writer, Check or Observe
// returned is wrapped; where ctx ends, its cause is.
func Run(ctx context.Context, t transport.Transport, job Job) ([]Traffic, error) {
	m, err := newMachine(t, job)
	if err == nil {
		if m.job.twoLanes() {
			err = m.runLanes(ctx)
		} else {
			err = m.run(ctx)
		}
	}
	if err != nil {
		return nil, fail(t, err)
	}
	return m.traffic(), nil
}

// fail aborts the group, unless another rank has, and returns the error that counts.
func fail(t transport.Transport, err error) error {
	if aborted := new(transport.AbortError); errors.As(err, &aborted) {
		return aborted
	}
	t.Abort(err)
	return err
}

// machine is the memory of one rank, or of one of its lanes, and its part.
//
// Invariant: memory[i] of what is computed is written only before anything of the
// segment is sent from it; that of an input is only read; and what was received belongs
// to its sender until release.
type machine struct {
	job    Job
	t      transport.Transport
	part   *Part
	dog    watchdog
	pieces int   // of a segment
	align  int64 // where it is cut

	memory   [][]byte // of the segment: inputs, elements received, wide elements
	buffers  *arena
	intakes  [2]intake // by turns, where something is read and written aside
	outlets  [2]outlet
	crew     crew
	compute             // of a stage
	messages []messages // by stage
	views    []view     // by processor
	show     func(worker, processor int)
	reader   aside[intake]
	writer   aside[outlet]
	lane     // unless the only one

	segments    int
	elementSum  int64 // bytes of an element, all segments together
	headerBytes int64
}

// An intake is what is read for one segment.
type intake struct {
	offset   int64
	segment  int
	elements [][]byte
	parts    [][]byte // of the elements, without padding
	own      [][]byte // buffers, nil for what lies in memory
}

// An outlet is what is written for one segment.
type outlet struct {
	offset  int64
	segment int
	homes   [][]byte // memory of wide elements that are outputs, else nil
	results [][]byte // without padding
	there   []bool   // the result lies where it belongs
	own     [][]byte // buffers for homes, nil for what lies in memory
}

// messages are those of a stage.
type messages struct {
	sends    []sending
	receives []receiving
}

type sending struct {
	first   bool // to this rank: carries the header
	began   int64
	parts   [][]byte
	pending transport.Sending
}

type receiving struct {
	first   bool // from this rank: carries the header
	began   int64
	lengths []int
	pending transport.Receiving
	release func()
}

// of puts a processor's name before an error.
func of(proc int, err error) error { return fmt.Errorf("processor %d: %w", proc, err) }

func newMachine(t transport.Transport, job Job) (*machine, error) {
	p := job.Part
	info := p.plan.Info()
	fail := func(format string, args ...any) (*machine, error) {
		return nil, of(p.first, fmt.Errorf(format, args...))
	}
	if t.Rank() != p.rank || t.Size() != p.ranks {
		return fail("the part of rank %d of %d at rank %d of %d", p.rank, p.ranks, t.Rank(), t.Size())
	}
	if len(job.Header) > 0 && job.Check == nil {
		return fail("a header and no Check for those that arrive")
	}
	pieces := info.PieceCount()
	if len(job.Inputs)*pieces != p.inputs || len(job.Outputs)*pieces != len(p.outputs) {
		return fail("%d inputs and %d outputs: the program has %d and %d",
			len(job.Inputs), len(job.Outputs), p.inputs/pieces, len(p.outputs)/pieces)
	}
	symbol := int64(info.Field.SymbolBytes())
	if job.Bytes < 0 || job.Bytes%symbol != 0 || job.Segment <= 0 || job.Segment%symbol != 0 {
		return fail("packets of %d bytes in segments of %d: want multiples of the symbol size, %d", job.Bytes, job.Segment, symbol)
	}
	if job.Timeout < 0 {
		return fail("timeout %v: want 0 or more", job.Timeout)
	}
	for i, out := range job.Outputs {
		if out.Writer == nil && int64(len(out.Memory)) < job.Bytes {
			return fail("output %d: memory of %d bytes for a packet of %d", i, len(out.Memory), job.Bytes)
		}
	}
	if job.inPlace() {
		job.Segment = max(job.Segment, job.Bytes)
	}
	m := &machine{
		job: job, t: t, part: p,
		pieces: pieces, align: max(job.Align, symbol),
		memory: make([][]byte, p.inputs+p.received+p.wide),
	}
	sentTo, heardFrom := map[int]bool{}, map[int]bool{}
	for _, st := range p.stages {
		var x messages
		for _, s := range st.sends {
			x.sends = append(x.sends, sending{first: len(job.Header) > 0 && !sentTo[s.rank]})
			sentTo[s.rank] = true
		}
		for _, r := range st.receives {
			x.receives = append(x.receives, receiving{first: len(job.Header) > 0 && !heardFrom[r.rank]})
			heardFrom[r.rank] = true
		}
		m.messages = append(m.messages, x)
	}
	m.views, m.show = make([]view, len(p.processors)), m.showOne
	m.reader.do = func(in *intake) error { return m.read(in, trace.ReadAhead) }
	m.writer.do = func(out *outlet) error { return m.write(out, trace.WriteBehind) }
	m.prepare()
	return m, nil
}

// inPlace reports whether nothing but scratch memory is needed and nobody is to see or be
// sent a segment, so that cutting packets would only cost time.
func (job *Job) inPlace() bool {
	p := job.Part
	if p.ranks > 1 || job.Observe != nil || p.plan.Info().PieceCount() > 1 || slices.Contains(p.homes, -1) {
		return false
	}
	n := int(job.Bytes)
	return !slices.ContainsFunc(job.Inputs, func(in Input) bool { return in.Reader != nil || len(in.Memory) < n }) &&
		!slices.ContainsFunc(job.Outputs, func(out Output) bool { return out.Writer != nil })
}

// allocate finds memory for what does not lie in memory already.
func (m *machine) allocate() {
	p := m.part
	size := m.element(min(m.job.Segment, m.job.Bytes))
	var lack []*[]byte
	want := func(p *[]byte) { lack = append(lack, p) }
	for w := range p.wide {
		if p.homes[w] < 0 {
			want(&m.memory[p.inputs+p.received+w])
		}
	}
	turns := 2
	if m.job.Segment >= m.job.Bytes {
		m.job.Ahead = false
	}
	if !m.job.Ahead {
		turns = 1
	}
	for i := range turns {
		in, out := &m.intakes[i], &m.outlets[i]
		in.elements, in.parts, in.own = make([][]byte, p.inputs), make([][]byte, p.inputs), make([][]byte, p.inputs)
		out.homes, out.results, out.own = make([][]byte, p.wide), make([][]byte, len(p.outputs)), make([][]byte, p.wide)
		out.there = make([]bool, len(p.outputs))
		for n := range in.own {
			if m.job.Inputs[n/m.pieces].Reader != nil {
				want(&in.own[n])
			}
		}
		for w, o := range p.homes {
			if o < 0 {
				continue
			}
			if m.job.Outputs[o/m.pieces].Writer != nil {
				want(&out.own[w])
			}
		}
	}
	count := workers(m.blocks(size))
	m.stride = m.blockLength + apart
	m.buffers = newArena(&segments, len(lack)*(size+apart))
	for _, b := range lack {
		*b = m.buffers.take(size)
	}
	for range count {
		memory := newArena(&scratches, max(p.scratch*m.stride, min(p.scratch, 1)*leastScratch))
		m.workers = append(m.workers, worker{memory, memory.take(p.scratch * m.stride), make([][]byte, p.widest)})
	}
}

func (m *machine) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.dog = watchdog{t: m.t, timeout: m.job.Timeout, bark: cancel}
	m.allocate()
	defer m.crew.dismiss()
	if m.turns != nil {
		err = m.runLane(ctx)
	} else {
		err = m.runAll(ctx)
	}
	if err != nil {
		return err
	}
	m.buffers.free() // not after an error: others may be reading it
	for i := range m.workers {
		m.workers[i].memory.free()
	}
	return nil
}

// runAll runs all segments one after the other.
func (m *machine) runAll(ctx context.Context) (err error) {
	defer m.reader.end()
	defer m.writer.end()
	m.intakes[0].at(m, 0)
	if err := m.read(&m.intakes[0], trace.FirstLane); err != nil {
		return err
	}
	for turn := 0; ; turn = (turn + 1) % 2 {
		if ctx.Err() != nil {
			return m.ended(context.Cause(ctx))
		}
		in, next, out := &m.intakes[turn], &m.intakes[1-turn], &m.outlets[turn]
		if !m.job.Ahead {
			in, next, out = &m.intakes[0], &m.intakes[0], &m.outlets[0]
		}
		offset := in.offset + int64(in.segment)
		last := offset >= m.job.Bytes
		if m.job.Ahead && !last {
			next.at(m, offset)
			m.reader.begin(next)
		}
		if err := m.segment(ctx, in, out); err != nil {
			return err
		}
		if last {
			break
		}
		if m.job.Ahead {
			began := m.job.Trace.Now()
			err = m.reader.wait()
			m.done(trace.Turn, trace.FirstLane, began, next.offset, 0)
		} else {
			next.at(m, offset)
			err = m.read(next, trace.FirstLane)
		}
		if err != nil {
			return err
		}
	}
	return m.writer.wait()
}

// ended is the error of a run that was ended from outside: one of the only rank needs
// no name.
func (m *machine) ended(cause error) error {
	if m.part.ranks == 1 {
		return cause
	}
	return of(m.part.first, cause)
}

// at sets the segment that begins at an offset.
func (in *intake) at(m *machine, offset int64) {
	in.offset, in.segment = offset, int(min(m.job.Segment, m.job.Bytes-offset))
}

// at sets the segment to that of an intake.
func (out *outlet) at(in *intake) { out.offset, out.segment = in.offset, in.segment }

// read reads the inputs of a segment, in some row of the trace.
func (m *machine) read(s *intake, row trace.Row) error {
	began := m.job.Trace.Now()
	err := m.fill(s)
	m.done(trace.Read, row, began, s.offset, int64(s.segment)*int64(len(m.job.Inputs)))
	return err
}

// fill reads the inputs of a segment.
func (m *machine) fill(s *intake) error {
	n := m.element(int64(s.segment))
	i := 0
	for q, proc := range m.part.processors {
		for own := range proc.inputs {
			begin, length := m.piece(i, s.segment, n)
			if err := m.fillOne(s, i, m.job.Inputs[i/m.pieces], s.offset+int64(begin), n, length); err != nil {
				return of(m.part.first+q, fmt.Errorf("read input %d: %w", own/m.pieces, err))
			}
			i++
		}
	}
	return nil
}

// fillOne reads length bytes of input i from an offset on, and pads them to n.
func (m *machine) fillOne(s *intake, i int, packet Input, offset int64, n, length int) error {
	element := viewOf(packet.Memory, offset, n, length)
	if element == nil {
		element = atLeast(&s.own[i], n)
		clear(element[length:])
		if err := packet.readPadded(element[:length], offset); err != nil {
			return err
		}
	}
	s.elements[i], s.parts[i] = element, element[:length]
	if packet.Check == nil {
		return nil
	}
	return packet.Check(s.parts[i], offset)
}

// place finds out where the outputs of a segment are to lie.
func (m *machine) place(s *outlet) {
	n := m.element(int64(s.segment))
	for w, o := range m.part.homes {
		if o < 0 {
			continue
		}
		begin, length := m.piece(o, s.segment, n)
		view := viewOf(m.job.Outputs[o/m.pieces].Memory, s.offset+int64(begin), n, length)
		s.homes[w], s.there[o] = view, view != nil
		if !s.there[o] {
			s.homes[w] = atLeast(&s.own[w], n)
		}
	}
}

// viewOf returns the n bytes of an element where the packet has them in memory, nil where
// it has not. An element whose last bytes are padding, after length, is nowhere whole.
func viewOf(packet []byte, offset int64, n, length int) []byte {
	if length < n || offset+int64(n) > int64(len(packet)) {
		return nil
	}
	return packet[offset:][:n:n]
}

// atLeast returns n bytes of a buffer, made anew where it has fewer: the end of a packet
// in memory has none yet.
func atLeast(buffer *[]byte, n int) []byte {
	if len(*buffer) < n {
		*buffer = make([]byte, n)
	}
	return (*buffer)[:n]
}

// write writes the outputs of a segment that do not lie where they belong, in some row of
// the trace.
func (m *machine) write(s *outlet, row trace.Row) error {
	began := m.job.Trace.Now()
	err := m.empty(s)
	m.done(trace.Write, row, began, s.offset, int64(s.segment)*int64(len(m.job.Outputs)))
	return err
}

// empty is write without the trace.
func (m *machine) empty(s *outlet) error {
	n := m.element(int64(s.segment))
	for o, part := range s.results {
		if s.there[o] {
			continue
		}
		begin, _ := m.piece(o, s.segment, n)
		to, offset := m.job.Outputs[o/m.pieces], s.offset+int64(begin)
		if to.Writer == nil {
			copy(to.Memory[offset:], part)
		} else if _, err := to.Writer.WriteAt(part, offset); err != nil {
			return m.writing(o, err)
		}
	}
	return nil
}

// writing says that output o, an element, could not be written.
func (m *machine) writing(o int, err error) error {
	q := m.part.outputs[o].proc
	for _, before := range m.part.processors[:q] {
		o -= before.outputs
	}
	return of(m.part.first+q, fmt.Errorf("write output %d: %w", o/m.pieces, err))
}

// segment runs the programs on one segment of every packet.
func (m *machine) segment(ctx context.Context, in *intake, out *outlet) error {
	p := m.part
	out.at(in)
	m.place(out)
	if err := m.stages(ctx, in, out); err != nil {
		return err
	}
	if err := m.observe(in, out); err != nil {
		return err
	}
	began := m.job.Trace.Now()
	err := m.writer.wait()
	m.done(trace.Turn, trace.FirstLane, began, in.offset, 0)
	if err != nil {
		return err
	}
	if last := in.offset+int64(in.segment) >= m.job.Bytes; m.job.Ahead && !p.borrowed && !last {
		m.writer.begin(out)
	} else if err := m.write(out, trace.FirstLane); err != nil {
		return err
	}
	return m.settle(ctx, out)
}

// stages computes, sends and receives all of a segment; its outputs have their places.
func (m *machine) stages(ctx context.Context, in *intake, out *outlet) error {
	p := m.part
	n := m.element(int64(in.segment))
	m.elementSum += int64(n)
	m.segments++
	copy(m.memory, in.elements)
	for w, home := range out.homes {
		if p.homes[w] >= 0 {
			m.memory[p.inputs+p.received+w] = home
		}
	}
	for i := range p.stages {
		began := m.job.Trace.Now()
		m.code(i, n)
		m.coded(i, began, in.offset)
		if err := m.exchange(ctx, i, n, in.offset); err != nil {
			return err
		}
	}
	for o, result := range p.outputs {
		_, length := m.piece(o, in.segment, n)
		out.results[o] = m.memory[result.at][:length]
	}
	return nil
}

// observe shows the segment to the observer, if there is one.
func (m *machine) observe(in *intake, out *outlet) error {
	if m.job.Observe == nil {
		return nil
	}
	began := m.job.Trace.Now()
	inputs, outputs := in.parts, out.results
	for q, proc := range m.part.processors {
		v := &m.views[q]
		v.inputs, v.outputs = inputs[:proc.inputs], outputs[:proc.outputs]
		inputs, outputs = inputs[proc.inputs:], outputs[proc.outputs:]
	}
	m.crew.share(len(m.views), m.show)
	m.done(trace.Observe, m.row(), began, in.offset, int64(in.segment)*int64(len(m.job.Inputs)+len(m.job.Outputs)))
	for q := range m.views {
		if err := m.views[q].err; err != nil {
			return of(m.part.first+q, err)
		}
	}
	return nil
}

// A view is what the observer is to see of one processor, and what it says.
type view struct {
	inputs, outputs [][]byte
	err             error
}

func (m *machine) showOne(_, q int) {
	v := &m.views[q]
	v.err = m.job.Observe(m.part.first+q, v.inputs, v.outputs)
}

// exchange sends and receives what follows a stage. All of a round's messages are under
// way before the first is waited for, so that the ports work side by side.
func (m *machine) exchange(ctx context.Context, i, n int, offset int64) error {
	st, x := &m.part.stages[i], &m.messages[i]
	firstSegment := offset == 0
	for k := range st.receives {
		r, v := &st.receives[k], &x.receives[k]
		v.lengths = v.lengths[:0]
		if v.first && firstSegment {
			v.lengths = append(v.lengths, len(m.job.Header))
		}
		for range r.count {
			v.lengths = append(v.lengths, n)
		}
		v.began = m.job.Trace.Now()
		v.pending = m.t.Receive(r.rank, m.tag(st.round, r.port), v.lengths)
	}
	for k := range st.sends {
		s, v := &st.sends[k], &x.sends[k]
		v.parts = v.parts[:0]
		if v.first && firstSegment {
			v.parts = append(v.parts, m.job.Header)
			m.headerBytes += int64(len(m.job.Header))
		}
		for _, slot := range s.slots {
			v.parts = append(v.parts, m.memory[slot][:n])
		}
		v.began = m.job.Trace.Now()
		v.pending = m.t.Send(s.rank, m.tag(st.round, s.port), v.parts)
	}
	for k := range st.receives {
		r, v := &st.receives[k], &x.receives[k]
		began := m.job.Trace.Now()
		m.dog.watch(r.rank)
		message, err := v.pending.Wait(ctx)
		err = m.dog.rest(err)
		m.received(st.round, r, began, v.began, offset, n)
		if err != nil {
			return of(r.dst, fmt.Errorf("round %d: receive from processor %d: %w", st.round, r.src, m.inRound(st.round, err)))
		}
		v.release = message.Release
		parts := message.Parts
		if v.first && firstSegment {
			if err := m.job.Check(r.rank, parts[0]); err != nil {
				return of(r.dst, fmt.Errorf("round %d: %w", st.round, err))
			}
			parts = parts[1:]
		}
		copy(m.memory[r.first:], parts)
	}
	return nil
}

// settle ends a segment: it gives back what was received and waits until what
// was sent may be overwritten.
//
// It goes through the rounds backwards. What was received in round t may have
// been passed on, from where it lies, in later rounds only, and these have been
// waited for by then. As every rank does so, a wait for round t depends on
// waits for later rounds alone, so they all end.
func (m *machine) settle(ctx context.Context, out *outlet) error {
	n := m.element(int64(out.segment))
	for i := len(m.part.stages) - 1; i >= 0; i-- {
		st := &m.part.stages[i]
		for k := range st.receives {
			m.messages[i].receives[k].release()
		}
		for k := range st.sends {
			s, v := &st.sends[k], &m.messages[i].sends[k]
			began := m.job.Trace.Now()
			m.dog.watch(s.rank)
			err := m.dog.rest(v.pending.Wait(ctx))
			m.sent(st.round, s, began, v.began, out.offset, n)
			if err != nil {
				return of(s.src, fmt.Errorf("round %d: send to processor %d: %w", st.round, s.dst, err))
			}
		}
	}
	return nil
}

// traffic returns what each processor sent.
func (m *machine) traffic() []Traffic {
	var all []Traffic
	for i, proc := range m.part.processors {
		t := proc.traffic
		t.Rounds = append([]plan.RoundTraffic{}, t.Rounds...)
		t.Bytes = proc.elements * m.elementSum
		t.Segments = m.segments
		if i == 0 {
			t.HeaderBytes = m.headerBytes
		}
		all = append(all, t)
	}
	return all
}

// An aside does one thing at a time beside the machine.
type aside[T any] struct {
	do   func(*T) error
	todo chan *T
	done chan error
	busy bool
}

// begin begins with a set. Nothing is under way.
func (a *aside[T]) begin(x *T) {
	if a.todo == nil {
		a.todo, a.done = make(chan *T, 1), make(chan error, 1)
		go func() {
			for x := range a.todo {
				a.done <- a.do(x)
			}
		}()
	}
	a.busy = true
	a.todo <- x
}

// wait waits for what is under way, if anything is.
func (a *aside[T]) wait() error {
	if !a.busy {
		return nil
	}
	a.busy = false
	return <-a.done
}

// end waits as well, and nothing follows.
func (a *aside[T]) end() {
	a.wait()
	if a.todo != nil {
		close(a.todo)
	}
}

// A watchdog bounds waits, one at a time: it ends their context when one takes
// too long. One timer serves all of them.
type watchdog struct {
	t       transport.Transport
	timeout time.Duration // 0: no bound
	bark    context.CancelCauseFunc
	timer   *time.Timer
	rank    int // that is waited for
}

// watch is called before a wait for a rank.
func (w *watchdog) watch(rank int) {
	w.rank = rank
	switch {
	case w.timeout == 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.timeout, func() { w.bark(w.late()) }) // others may ask while it waits
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

func (w *watchdog) late() error {
	err := fmt.Errorf("%w: nothing for %v", ErrTimeout, w.timeout)
	if who := transport.Blame(w.t, w.rank); who != "" {
		err = fmt.Errorf("%w; %s", err, who)
	}
	return err
}

// readPadded fills p from offset on, with zeros after the end of the packet.
func (packet Input) readPadded(p []byte, offset int64) (err error) {
	n := 0
	if packet.Reader == nil {
		n = copy(p, packet.Memory[min(offset, int64(len(packet.Memory))):])
	} else if n, err = packet.Reader.ReadAt(p, offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(p[n:])
	return nil
}
