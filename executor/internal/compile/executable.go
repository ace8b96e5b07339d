// Package compile makes the programs of a rank's processors steps, which run on packets of any length.
//
// It follows elements through the programs as values, combines sums that need not be apart, has each value computed in
// the step that first needs it, and gives those that outlive their step a place in the memory of a segment. All
// functions are pure: the plan, the rank and the number of ranks say all that an [Executable] is.
package compile

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"volley/executor/internal/cores"
	"volley/field"
	"volley/internal/poll"
	"volley/plan"
)

// Hosted is that of package executor.
func Hosted(processors, rank, ranks int) (first, end int) {
	return rank * processors / ranks, (rank + 1) * processors / ranks
}

// RankOf is that of package executor.
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
	Plan        plan.Plan
	Rank, Ranks int
	Rounds      int
	First       int // processor here
	Processors  []Processor

	// Elements of all processors in the memory of a segment, in this order. Before those of a message that may have a
	// header there is a place for it.
	Inputs   int
	Headers  int
	Received int
	Computed int // of these, those that are sent, put out or needed in later rounds
	Between  int // received or computed, and not put out

	Outputs  []Output
	Steps    []Step
	Sends    []Send       // in the order of steps
	Receives []Receive    // in the order of rounds
	Scratch  int          // blocks of elements that only a round needs
	Widest   int          // inputs and outputs of an operation
	Work     int          // multiply-adds of a symbol
	Compact  bool         // maps are small, and made ready when they are needed
	Binary   bool         // the characteristic is 2
	Planar   field.Planar // of operations that convert
}

// A Processor is what is to be known of one that lives here.
type Processor struct {
	Inputs, Outputs Span
	MultiplyAdds    int                 // per symbol
	Rounds          []plan.RoundTraffic // what it sends
	Elements        int64               // sent
}

// A Span is some of the inputs or outputs of all processors, or of the sends: [first, end).
type Span struct{ First, End int }

// An Output says which element is an output.
type Output struct {
	Proc    int  // that it is of, of those here
	Element int  // in the memory of the segment
	First   bool // of the outputs that are the element, which is no input
}

// A Step computes, and then sends to other ranks, as soon as what it needs is received. The last
// one computes outputs.
type Step struct {
	Needs      int32 // receives and steps
	Operations []Operation
	Sends      Span
	Wakes      []int // steps that need it, in order
}

// An Operation computes elements from others.
type Operation struct {
	Map             field.Map // nil: the one output is zero, or the converted input
	Outputs, Inputs []ElementOffset
	Convert         Conversion
}

// An ElementOffset says where an element lies: in the memory of the segment, or ^i in block i of the
// scratch memory.
type ElementOffset int32

// A Conversion copies an element, perhaps into another layout.
type Conversion uint8

// The conversions of an operation, or none.
const (
	NotConverted Conversion = iota
	Copied
	ToPlanes
	FromPlanes
)

// A Message is one between a processor here and one at another rank.
type Message struct {
	Src, Dst, Rank, Round, Port int32
	First                       bool // of those to this rank, or from it
	Again                       bool // carries what the send before does, of the same step
}

func messageOf(src, dst, rank, round, port int) Message {
	return Message{Src: int32(src), Dst: int32(dst), Rank: int32(rank), Round: int32(round), Port: int32(port)}
}

// A Send is a message that goes out.
type Send struct {
	Message
	Slots []int32 // in memory
}

// A Receive is one that comes.
type Receive struct {
	Message
	Element, Count int32 // in memory
	Wakes          []int // steps that need it, in order
}

// Prepare makes the executable of a rank, until the context ends: the error is then its cause. It returns an error when
// a program cannot be made, or sends and receives of processors here do not agree. A compact one holds the coefficients
// of its maps as they are in packets, and makes a map ready whenever it computes with it, which is done by [cores.On].
func Prepare(ctx context.Context, p plan.Plan, rank, ranks int, compact bool) (x *Executable, err error) {
	defer poll.Catch(&err)
	info := p.Info()
	if ranks < 1 || ranks > info.Processors || rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("a plan for %d processors at rank %d of %d", info.Processors, rank, ranks)
	}
	first, end := Hosted(info.Processors, rank, ranks)
	minus := info.Field.Sub(field.Element{}, field.One)
	x = &Executable{Plan: p, Rank: rank, Ranks: ranks, Rounds: info.Rounds(), First: first, Binary: minus == field.One, Compact: compact}
	x.Processors, x.Outputs = make([]Processor, 0, end-first), make([]Output, 0, end-first)
	c, p := &compiler{}, poll.WithContext(ctx, p)
	c.poller = poll.New(ctx)
	c.x, c.field, c.short, c.zero = x, info.Field, info.Field.SymbolBytes() <= 4, -1
	var joint *plan.JointProgram
	if j, ok := p.(plan.Joint); ok && ranks == 1 {
		joint = j.Joint()
	}
	if joint != nil {
		count := 1
		if len(p.Classes()) == 1 {
			count = end
		}
		for proc := 0; proc < end; proc += count {
			x.addProcessors(p.Schedule(proc), count)
		}
		if err := c.followTogether(ctx, joint); err != nil {
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
	n := 300 * len(x.Processors)
	for _, s := range x.Steps {
		for _, op := range s.Operations {
			n += 150 + 8*(len(op.Outputs)+len(op.Inputs)) + 80*len(op.Outputs)*len(op.Inputs)
		}
	}
	return int64(n)
}

// addProcessors adds so many processors with that schedule.
func (x *Executable) addProcessors(s plan.Schedule, count int) {
	p := Processor{MultiplyAdds: s.Terms, Rounds: make([]plan.RoundTraffic, len(s.Rounds))}
	for t, r := range s.Rounds {
		traffic := &p.Rounds[t]
		traffic.Messages = len(r.Sends)
		for _, sent := range r.Sends {
			traffic.Largest = max(traffic.Largest, len(sent.Slots))
			p.Elements += int64(len(sent.Slots))
		}
	}
	for range count {
		p.Inputs, p.Outputs = Span{x.Inputs, x.Inputs + s.Inputs}, Span{len(x.Outputs), len(x.Outputs) + len(s.Outputs)}
		for range s.Outputs {
			x.Outputs = append(x.Outputs, Output{Proc: len(x.Processors)})
		}
		x.Inputs += s.Inputs
		x.Processors = append(x.Processors, p)
	}
}

// programsOf returns the programs of processors [first, end).
func programsOf(ctx context.Context, p plan.Plan, first, end int) ([]*plan.Program, error) {
	programs, errs := make([]*plan.Program, end-first), make([]error, end-first)
	pool := cores.Pool{Cores: runtime.GOMAXPROCS(0)}
	defer pool.Stop()
	pool.Share(end-first, func(_, i int) {
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
			return nil, fmt.Errorf("processor %d: program: %w", first+i, err)
		}
	}
	return programs, nil
}

// Elements returns how many inputs and outputs there are.
func (x *Executable) Elements() int { return x.Inputs + len(x.Outputs) }

// Direct reports whether all that is computed are outputs, each by one operation on inputs.
func (x *Executable) Direct() bool {
	for _, s := range x.Steps {
		for i := range s.Operations {
			if slices.ContainsFunc(s.Operations[i].Inputs, func(l ElementOffset) bool { return int(l) >= x.Inputs }) {
				return false
			}
		}
	}
	return x.Ranks == 1 && x.Scratch == 0 && x.Between == 0
}

// Apply computes an operation on packets, in the order of its locations. With stream what it computes passes by the
// caches, where it can.
func (x *Executable) Apply(op *Operation, outputs, inputs [][]byte, stream bool) {
	switch {
	case op.Convert == Copied:
		copy(outputs[0], inputs[0])
	case op.Convert == ToPlanes:
		x.Planar.ToPlanes(outputs[0], inputs[0])
	case op.Convert == FromPlanes:
		x.Planar.FromPlanes(outputs[0], inputs[0])
	case op.Map == nil:
		clear(outputs[0])
	default:
		if past, ok := op.Map.(field.Streamer); ok && stream {
			past.Stream(outputs, inputs)
			return
		}
		op.Map.Apply(outputs, inputs, false)
	}
}
