package executor

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"volley/field"
	"volley/internal/poll"
	"volley/plan"
)

// Hosted returns which processors of a plan live at a rank: all of [first, end). They
// are dealt out in order, to each rank as many as to any other or one more.
func Hosted(processors, rank, ranks int) (first, end int) {
	return rank * processors / ranks, (rank + 1) * processors / ranks
}

// RankOf returns the rank at which a processor of a plan lives: it is among those that
// [Hosted] returns for that rank.
func RankOf(proc, processors, ranks int) int { return ((proc+1)*ranks - 1) / processors }

// An Executable is what one rank has to do for a plan: the programs of its processors, made
// ready to run on packets of any length, any number of times. It is immutable and safe
// for concurrent use.
//
// What processors of one rank send each other stays where it lies. Combinations of
// the same sources, also those of several processors, are one [field.Map]. The messages of a
// round that wait for the same others are one step. Block by block, it computes everything for
// one block before the next, so that what is needed only there never leaves the cache.
type Executable struct {
	plan        plan.Plan
	rank, ranks int
	planRounds  int
	first       int // processor here
	processors  []processor

	// Elements of all processors in the memory of a segment, in this order. Before those of a message that may have a header
	// there is a place for it.
	inputs   int
	headers  int
	received int
	computed int // of these, those that are sent, put out or needed in later rounds
	between  int // received or computed, and not put out

	outputs  []result
	steps    []step
	sends    []send       // in the order of steps
	receives []receive    // in the order of rounds
	scratch  int          // blocks of elements that only a round needs
	widest   int          // inputs and outputs of an operation
	work     int          // multiply-adds of a symbol
	compact  bool         // maps are small, and made ready when they are needed
	binary   bool         // the characteristic is 2
	planar   field.Planar // of operations that convert
}

// A processor is what is to be known of one that lives here.
type processor struct {
	inputs, outputs span
	traffic         Traffic
	elements        int64 // sent
}

// A span is some of the inputs or outputs of all processors, or of the sends: [first, end).
type span struct{ first, end int }

// A result says which element is an output.
type result struct {
	proc  int  // that it is of, of those here
	at    int  // in the memory of the segment
	first bool // of the outputs that are the element, which is no input
}

// A step computes, and then sends to other ranks, as soon as what it needs is received. The last
// one computes outputs.
type step struct {
	round      int32 // of its messages
	needs      int32 // receives and steps
	operations []operation
	sends      span
	wakes      []int // steps that need it, in order
}

// An operation computes elements from others.
type operation struct {
	of      field.Map // nil: the one output is zero, or the converted input
	out, in []location
	add     bool // to what is in the one output
	convert conversion
}

// A location is one of an element: in the memory of the segment, or ^i in block i of the
// scratch memory.
type location int32

// A conversion copies an element, perhaps into another layout.
type conversion uint8

const (
	notConverted conversion = iota
	copied
	toPlanes
	fromPlanes
)

// A message is one between a processor here and one at another rank.
type message struct {
	src, dst, rank, round, port int32
	first                       bool // of those to this rank, or from it
	again                       bool // carries what the send before does, of the same step
}

func messageOf(src, dst, rank, round, port int) message {
	return message{src: int32(src), dst: int32(dst), rank: int32(rank), round: int32(round), port: int32(port)}
}

type send struct {
	message
	slots []int32 // in memory
}

type receive struct {
	message
	at, count int32 // in memory
	wakes     []int // steps that need it, in order
}

// Prepare makes the executable of a rank. It returns an error when a program cannot be
// made, or sends and receives of processors here do not agree.
func Prepare(p plan.Plan, rank, ranks int) (*Executable, error) {
	return PrepareContext(context.Background(), p, rank, ranks)
}

// PrepareContext is [Prepare] until the context ends: the error is then its cause.
func PrepareContext(ctx context.Context, p plan.Plan, rank, ranks int) (*Executable, error) {
	return prepare(ctx, p, rank, ranks, false)
}

// PrepareCompact is [PrepareContext] for one of many ranks of a process. The executable holds the coefficients of its maps as
// they are in packets, a quarter or less of what kernels want, and makes a map ready whenever it computes with it, which it
// does by [OnCore]. It shares what is the same in the executable of another rank, unless that is nil.
func PrepareCompact(ctx context.Context, p plan.Plan, rank, ranks int, like *Executable) (x *Executable, err error) {
	defer poll.Catch(&err)
	if x, err = prepare(ctx, p, rank, ranks, true); err != nil {
		return nil, err
	}
	if like != nil {
		x.share(poll.New(ctx), like)
	}
	return x, nil
}

// share takes the lists of another executable that are equal.
func (x *Executable) share(steps *poll.Poller, y *Executable) {
	for i := range x.steps[:min(len(x.steps), len(y.steps))] {
		s, t := &x.steps[i], &y.steps[i]
		steps.Steps(1 + len(s.wakes))
		s.wakes = either(s.wakes, t.wakes)
		for k := range s.operations[:min(len(s.operations), len(t.operations))] {
			a, b := &s.operations[k], &t.operations[k]
			steps.Steps(len(a.out) + len(a.in))
			a.out, a.in = either(a.out, b.out), either(a.in, b.in)
		}
	}
	for i := range x.sends[:min(len(x.sends), len(y.sends))] {
		steps.Steps(len(x.sends[i].slots))
		x.sends[i].slots = either(x.sends[i].slots, y.sends[i].slots)
	}
	for i := range x.receives[:min(len(x.receives), len(y.receives))] {
		steps.Steps(len(x.receives[i].wakes))
		x.receives[i].wakes = either(x.receives[i].wakes, y.receives[i].wakes)
	}
}

// either returns the other list where it is equal.
func either[T comparable](own, other []T) []T {
	if slices.Equal(own, other) {
		return other
	}
	return own
}

// compilers are those of compact executables: the lists of thousands of ranks would keep the garbage collector busy.
var compilers = sync.Pool{New: func() any { return &compiler{} }}

// emptied is a compiler that has the room of c, and holds no program.
func (c *compiler) emptied() *compiler {
	return &compiler{
		values: c.values[:0], terms: c.terms[:0], batches: c.batches[:0], entries: c.entries[:0], elements: c.elements[:0], found: c.found[:0],
	}
}

func prepare(ctx context.Context, p plan.Plan, rank, ranks int, compact bool) (x *Executable, err error) {
	defer poll.Catch(&err)
	info := p.Info()
	if ranks < 1 || ranks > info.Processors || rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("a plan for %d processors at rank %d of %d", info.Processors, rank, ranks)
	}
	first, end := Hosted(info.Processors, rank, ranks)
	minus := info.Field.Sub(field.Element{}, field.One)
	x = &Executable{plan: p, rank: rank, ranks: ranks, planRounds: info.Rounds(), first: first, binary: minus == field.One, compact: compact}
	x.processors, x.outputs = make([]processor, 0, end-first), make([]result, 0, end-first)
	c, p := &compiler{}, poll.Under(ctx, p)
	if compact {
		c = compilers.Get().(*compiler)
		defer func() { compilers.Put(c.emptied()) }()
	}
	c.poller = poll.New(ctx)
	c.x, c.field, c.short, c.zero = x, info.Field, info.Field.SymbolBytes() <= 4, -1
	c.minus = c.coefOf(minus)
	var all *plan.Together
	if j, ok := p.(plan.Joint); ok && ranks == 1 {
		all = j.Joint()
	}
	if all != nil {
		alike := 1
		if len(p.Classes()) == 1 {
			alike = end
		}
		for proc := 0; proc < end; proc += alike {
			x.addProcessors(p.Schedule(proc), alike)
		}
		if err := c.followTogether(ctx, all); err != nil {
			return nil, err
		}
	} else {
		if c.programs, err = programsOf(ctx, p, first, end); err != nil {
			return nil, err
		}
		for _, program := range c.programs {
			c.poller.Steps(1 + len(program.Rounds) + len(program.Outputs))
			x.addProcessors(program.Schedule(), 1)
		}
		if err := c.follow(); err != nil {
			return nil, err
		}
	}
	for _, pass := range passes {
		pass(c)
	}
	return x, nil
}

// Bytes returns about how much memory the executable takes: for each operation, and for each entry of its map, of which
// the field has a form of its own, and a plan of layers keeps the element.
func (x *Executable) Bytes() int64 {
	n := 300 * len(x.processors)
	for _, s := range x.steps {
		for _, op := range s.operations {
			n += 150 + 8*(len(op.out)+len(op.in)) + 80*len(op.out)*len(op.in)
		}
	}
	return int64(n)
}

// addProcessors adds so many processors with that schedule.
func (x *Executable) addProcessors(s plan.Schedule, count int) {
	p := processor{traffic: Traffic{MultiplyAdds: s.Terms, Rounds: make([]plan.RoundTraffic, len(s.Rounds))}}
	for t, r := range s.Rounds {
		traffic := &p.traffic.Rounds[t]
		traffic.Messages = len(r.Sends)
		for _, sent := range r.Sends {
			traffic.Largest = max(traffic.Largest, sent.Count)
			p.elements += int64(sent.Count)
		}
	}
	for range count {
		p.inputs, p.outputs = span{x.inputs, x.inputs + s.Inputs}, span{len(x.outputs), len(x.outputs) + s.Outputs}
		for range s.Outputs {
			x.outputs = append(x.outputs, result{proc: len(x.processors)})
		}
		x.inputs += s.Inputs
		x.processors = append(x.processors, p)
	}
}

// programsOf returns the programs of processors [first, end).
func programsOf(ctx context.Context, p plan.Plan, first, end int) ([]*plan.Program, error) {
	programs, errs := make([]*plan.Program, end-first), make([]error, end-first)
	pool := workerPool{cores: runtime.GOMAXPROCS(0)}
	defer pool.stop()
	pool.share(end-first, func(_, i int) {
		if ctx.Err() != nil { // which plans of others do not ask for
			errs[i] = context.Cause(ctx)
			return
		}
		programs[i], errs[i] = p.Program(first + i)
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i, err := range errs {
		if err != nil {
			return nil, of(first+i, fmt.Errorf("program: %w", err))
		}
	}
	return programs, nil
}
