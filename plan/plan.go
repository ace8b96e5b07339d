package plan

import (
	"context"
	"strconv"
	"strings"

	"volley/field"
)

// A Slot is an index into a processor's memory, from 0. Memory is append-only: slots 0 … Inputs-1 are the processor's
// own packets; each combination computed and each element received takes the next slot, in program order.
type Slot = int

// A Term is one summand of a linear combination.
type Term struct {
	Slot Slot
	Coef field.Element
}

// A Combination is the sum of its terms; an empty one is the zero packet.
type Combination []Term

// A Send is a message: the packets in Slots, one or more, leave on Port, below p, for the same port of another processor.
type Send struct {
	Port  int    `json:"port"`
	Dst   int    `json:"dst"`
	Slots []Slot `json:"slots"`
}

// A Recv is the other end of a [Send] of the same round, port and count: Count elements from Src take the next slots.
type Recv struct {
	Port  int `json:"port"`
	Src   int `json:"src"`
	Count int `json:"count"`
}

// A Round is one synchronous step of one processor: it computes, sends and then receives. Terms and Sends name only slots
// that exist by then. No two Sends have one Port, nor two Recvs, which are in port order.
type Round struct {
	Compute []Combination `json:"compute"`
	Sends   []Send        `json:"sends"`
	Recvs   []Recv        `json:"recvs"`
}

// A Program is one processor's part of a plan. [Validate] checks its invariants, each under the name of a [Rule].
type Program struct {
	Proc    int           // the processor, in [0, K)
	Inputs  int           // own packets, in slots 0 … Inputs-1
	Rounds  []Round       // as many at every processor of the plan
	Compute []Combination // after the last round
	Outputs []Slot        // where the results lie
}

// A Schedule is a [Program] without its coding: who sends how much to whom. Its combinations may be empty, and which slots
// are sent need not be right, only how many.
type Schedule struct {
	Program
	Slots int // size of the memory when the program has ended
	Terms int // of all combinations, where no coefficient is zero
}

// A Phase is a named group of consecutive rounds.
type Phase struct {
	Name   string `json:"name"`
	Rounds int    `json:"rounds"`
}

// Info is what all processors of a plan have in common.
type Info struct {
	Algorithm  string      // registry name, such as "prepare-and-shoot"
	Parameters string      // what the algorithm chose, for people, such as "m=4 n=4"; may be empty
	Arguments  [][]int     // the same as lists of numbers; a file of a plan has none
	Field      field.Field // of every coefficient
	Processors int         // K
	Ports      int         // p: messages a processor may send, and receive, in a round
	Rows       int         // rows of A: initial packets of all processors together
	Columns    int         // columns of A: coded packets of all processors together
	Pieces     int         // equal parts that packets are cut into, each an input or output of its own; 0 counts as 1
	Phases     []Phase     // in order; their rounds add up to the rounds of the plan
	Notes      []string    // for people: the structure used, how an order came about
	Layers     []string    // for people: what each layer of a product does, in order
}

// Rounds returns the number of rounds of the plan.
func (i Info) Rounds() int {
	n := 0
	for _, p := range i.Phases {
		n += p.Rounds
	}
	return n
}

// Name returns the algorithm with its arguments, such as "universal:4,4" or "exchange:8/4,2", by which a registry finds it.
func (i Info) Name() string {
	var lists []string
	for _, list := range i.Arguments {
		var numbers []string
		for _, n := range list {
			numbers = append(numbers, strconv.Itoa(n))
		}
		lists = append(lists, strings.Join(numbers, ","))
	}
	return strings.TrimSuffix(i.Algorithm+":"+strings.Join(lists, "/"), ":")
}

// PieceCount returns how many elements make up a packet: Pieces, or 1 where that is 0.
func (i Info) PieceCount() int { return max(1, i.Pieces) }

// RoundTraffic is the traffic of one round, of one processor or of all.
type RoundTraffic struct {
	Largest  int `json:"largest_message"` // elements of its largest message
	Messages int `json:"messages"`        // messages sent
}

// A Class stands for Count processors whose schedules differ only in the names of their partners.
type Class struct {
	Representative int
	Count          int
}

// A Plan is a schedule and a coding for all processors. Implementations make schedules and programs on demand, one
// processor at a time, and are safe for concurrent use. The processor argument is in [0, Info().Processors).
type Plan interface {
	Info() Info

	// Schedule returns what the processor sends and receives.
	Schedule(proc int) Schedule

	// Program returns the processor's program. It returns an error when the coding cannot be computed.
	Program(proc int) (*Program, error)

	// Classes partitions the processors; the counts add up to K.
	Classes() []Class

	// Row returns the row of A that multiplies the processor's given input, and
	// Column the column of A that its given output is to equal.
	Row(proc, input int) int
	Column(proc, output int) int
}

// A Joint is a plan that may know what all processors compute together, where no message has to be
// sent between them.
type Joint interface {
	Plan

	// Joint returns nil where it does not.
	Joint() *JointProgram
}

// A JointProgram is a program without rounds: its inputs, and its outputs, are those of all processors in order.
type JointProgram struct {
	Combinations, Terms int // numbers of these, at most

	// Walk computes one combination after the other, which is gone after the call. It returns the outputs, and the terms
	// that each processor's own program leaves out of those in its schedule, as their coefficients are zero. The error is
	// the cause of the context, unless nil, that has ended.
	Walk func(ctx context.Context, compute func(Combination)) (outputs []Slot, zeros []int, err error)
}

// Schedule returns the schedule of the program, with the terms that it has.
func (p *Program) Schedule() Schedule {
	s := Schedule{Program: *p, Slots: p.Inputs + len(p.Compute), Terms: p.Terms()}
	for _, r := range p.Rounds {
		s.Slots += len(r.Compute)
		for _, x := range r.Recvs {
			s.Slots += x.Count
		}
	}
	return s
}

// Terms returns the number of terms of all combinations of the program: its multiply-adds per symbol.
func (p *Program) Terms() int {
	n := 0
	for _, c := range p.Compute {
		n += len(c)
	}
	for _, r := range p.Rounds {
		for _, c := range r.Compute {
			n += len(c)
		}
	}
	return n
}

// MemorySlots returns the packets of the largest processor memory of the plan, when nothing is forgotten.
func MemorySlots(p Plan) int {
	largest := 0
	for _, class := range p.Classes() {
		largest = max(largest, p.Schedule(class.Representative).Slots)
	}
	return largest
}
