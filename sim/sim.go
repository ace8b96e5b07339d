// Package sim tells what a plan costs without running it: it counts messages and adds up model time.
package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"volley/plan"
)

// Cost is what a plan costs, counted from the schedules of all processors: C1 and C2 of the model of Wang and Raviv
// (arXiv:2205.05183, introduction), and what the busiest processor exchanges, for the model of a [Network].
type Cost struct {
	C1     int                 // rounds
	C2     int                 // elements: the largest message of each round, summed
	C3     int                 // multiply-adds per symbol of the busiest processor, where no coefficient is zero
	Pieces int                 // elements that make up a packet
	Slots  int                 // of the largest memory, when nothing is forgotten
	Rounds []plan.RoundTraffic // in order, of all processors
	Nodes  []NodeRound         // in order, of the busiest processor
}

// A NodeRound is the most that a processor sends, or receives, in a round. On a slower link elements count for more: as many
// as pass the others' links meanwhile.
type NodeRound struct {
	Messages int
	Elements float64
}

// Messages returns the messages of the busiest processor, summed over the rounds, and
// NodeElements what it sends, or receives; NodePackets is this in packets.
func (c Cost) Messages() (n int) {
	for _, x := range c.Nodes {
		n += x.Messages
	}
	return n
}

func (c Cost) NodeElements() (n float64) {
	for _, x := range c.Nodes {
		n += x.Elements
	}
	return n
}

func (c Cost) NodePackets() float64 {
	return c.NodeElements() / float64(max(1, c.Pieces))
}

// PacketC2 returns C2 in packets, and PacketC3 C3 of a packet, rounded up; C2 and C3 are those of pieces.
func (c Cost) PacketC2() float64 { return float64(c.C2) / float64(max(1, c.Pieces)) }
func (c Cost) PacketC3() int     { return (c.C3 + max(1, c.Pieces) - 1) / max(1, c.Pieces) }

// Count counts the cost of p from one schedule per class of processors, so independent of K where all are alike.
func Count(p plan.Plan) Cost { return Model{}.Count(p) }

// Count is the function [Count] on the links of the network.
func (m Model) Count(p plan.Plan) Cost {
	c, _ := m.CountUntil(p, func(Cost) bool { return false })
	return c
}

// CountUntil is [Model.Count] that gives up, and returns false, once enough says so of the classes that were counted.
func (m Model) CountUntil(p plan.Plan, enough func(Cost) bool) (Cost, bool) {
	c := nothing(p)
	rates, _ := m.Network.Rates(p.Info().Processors) // or such that no plan is made for them
	for proc, rate := range rates {
		if rate < 1 {
			c.add(p.Schedule(proc), 0, rate)
		}
	}
	for _, class := range p.Classes() {
		c.add(p.Schedule(class.Representative), class.Count, 1)
		if enough(c) {
			return c, false
		}
	}
	return c, true
}

// AtLeast counts some processors only: no plan costs less than these.
func AtLeast(p plan.Plan, processors ...int) Cost {
	c := nothing(p)
	for _, proc := range processors {
		c.add(p.Schedule(proc), 1, 1)
	}
	return c
}

func nothing(p plan.Plan) Cost {
	rounds := p.Info().Rounds()
	return Cost{C1: rounds, Pieces: p.Info().PieceCount(), Rounds: make([]plan.RoundTraffic, rounds), Nodes: make([]NodeRound, rounds)}
}

// CountBetween counts the messages between hosts, those within one left out, where processors lie at ranks and ranks at
// hosts: Nodes has the most messages of a rank and the most elements of a host. Two processors of a host have one link.
func CountBetween(p plan.Plan, rankOf, hostOf func(proc int) int) Cost {
	c := nothing(p)
	type position struct{ round, index int } // of a rank, or of a host
	ranks, hosts := map[position][2]int{}, map[position][2]int{}
	add := func(counts map[position][2]int, key position, direction, n int) int {
		x := counts[key]
		x[direction] += n
		counts[key] = x
		return x[direction]
	}
	for proc := range p.Info().Processors {
		for t, r := range p.Schedule(proc).Rounds {
			count := func(direction, peer, elements int) {
				if hostOf(peer) == hostOf(proc) {
					return
				}
				largest := &c.Nodes[t]
				largest.Messages = max(largest.Messages, add(ranks, position{t, rankOf(proc)}, direction, 1))
				largest.Elements = max(largest.Elements, float64(add(hosts, position{t, hostOf(proc)}, direction, elements)))
			}
			for _, x := range r.Sends {
				count(0, x.Dst, len(x.Slots))
			}
			for _, x := range r.Recvs {
				count(1, x.Src, x.Count)
			}
		}
	}
	return c
}

// add adds processors that have one schedule, and links of that rate.
func (c *Cost) add(s plan.Schedule, count int, rate float64) {
	c.C2, c.C3, c.Slots = 0, max(c.C3, s.Terms), max(c.Slots, s.Slots)
	for t, r := range s.Rounds {
		c.Rounds[t].Messages += count * len(r.Sends)
		sent, received := 0, 0
		for _, x := range r.Sends {
			c.Rounds[t].Largest = max(c.Rounds[t].Largest, len(x.Slots))
			sent += len(x.Slots)
		}
		for _, x := range r.Recvs {
			received += x.Count
		}
		largest := &c.Nodes[t]
		largest.Messages = max(largest.Messages, len(r.Sends), len(r.Recvs))
		largest.Elements = max(largest.Elements, float64(max(sent, received))/rate)
		c.C2 += c.Rounds[t].Largest
	}
}

// element returns the bytes of an element of a plan: the last piece of a packet is filled up.
func (m Model) element(c Cost) float64 {
	return math.Ceil(float64(m.Symbols())/float64(max(1, c.Pieces))) * float64(max(1, m.SymbolBytes))
}

// RoundTimes returns the parts of [Model.Time] that the messages of each round take, for a cost that was counted.
func (m Model) RoundTimes(c Cost) []time.Duration {
	list := make([]time.Duration, len(c.Rounds))
	for t, r := range c.Rounds {
		ns := float64(m.Beta) + float64(r.Largest)*float64(m.Tau)*m.element(c)*float64(time.Second)
		if !m.Paper() {
			ns = m.Network.Round(c.Nodes[t].Messages, c.Nodes[t].Elements*m.element(c))
		}
		list[t] = time.Duration(min(ns, math.MaxInt64/2))
	}
	return list
}

// mostLooked bounds the coefficients that are looked at, in all programs: those of an inverse are dear, of a million any.
const mostLooked = 1 << 17

// MultiplyAdds counts C3, the multiply-adds per symbol at the busiest processor: the terms of all combinations of its
// program. One processor of each class is looked at, so where A has zeros a sister of it may have a few terms more; of
// very long programs, and very many, all coefficients count as nonzero. The error is that of plan.Plan's Program.
func MultiplyAdds(p plan.Plan) (int, error) {
	largest, looked := 0, 0
	for _, class := range p.Classes() {
		terms := p.Schedule(class.Representative).Terms
		if looked += terms; looked > mostLooked {
			largest = max(largest, terms)
			continue
		}
		prog, err := p.Program(class.Representative)
		if err != nil {
			return 0, fmt.Errorf("sim: program of processor %d: %w", class.Representative, err)
		}
		largest = max(largest, prog.Terms())
	}
	return largest, nil
}

// PerByte is a time for each byte, in seconds: of a message to pass, or of a multiply-add to be done.
type PerByte float64

// String returns the time in the unit that suits it, such as "0.8 ns/B".
func (t PerByte) String() string {
	x, units := float64(t), []string{"s", "ms", "µs", "ns"}
	for len(units) > 1 && math.Abs(x) < 1 {
		x, units = x*1000, units[1:]
	}
	return fmt.Sprintf("%.4g %s/B", x, units[0])
}

// Validate returns an error unless t is a finite number, 0 or more.
func (t PerByte) Validate() error {
	if t >= 0 && t <= math.MaxFloat64 {
		return nil
	}
	return fmt.Errorf("%v: want a number, 0 or more", t)
}

// Model gives the time of a schedule, by one of two models: that of a network, or that of the
// paper, in which a message of d packets of W bytes takes β + d·W·τ.
type Model struct {
	Network     Network       // the zero value: the model of the paper
	Beta        time.Duration // β, per message
	Tau         PerByte       // τ, of a message
	Gamma       PerByte       // γ, of a multiply-add; 0: coding counts for nothing
	Bytes       int64         // W, of a packet
	SymbolBytes int           // of a symbol, which no plan cuts; 0: 1
}

// Paper reports whether the model is that of the paper.
func (m Model) Paper() bool { return m.Network == Network{} }

// Symbols returns how many symbols a packet has.
func (m Model) Symbols() int64 { return m.Bytes / int64(max(1, m.SymbolBytes)) }

// Time returns the time of a plan, and the longest duration where that is longer. In both models coding takes C3·W·γ,
// all of it after the messages, and an element of a plan that cuts packets into pieces has so much fewer bytes.
// Messages take C1·β + C2·W·τ in the model of the paper. On a network they take L + o·m + G·b in each round that has
// any, for the m messages and b bytes of the busiest processor; where these were not counted, the least that C1 and C2
// allow.
func (m Model) Time(c Cost) time.Duration {
	element := m.element(c)
	ns := float64(c.C1)*float64(m.Beta) + float64(c.C2)*float64(m.Tau)*element*float64(time.Second)
	if !m.Paper() {
		ns = m.Network.time(c, element)
	}
	ns += float64(c.C3) * float64(m.Gamma) * element * float64(time.Second)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}

// Front returns the Pareto front of a list by C1 and C2 in packets, the fewest rounds first: every entry but those that
// another one beats in one of the two and at least equals in the other. Of entries that cost the same Front returns the
// first. It asks for the cost of an entry once.
func Front[T any](list []T, costOf func(T) Cost) []T {
	type costed struct {
		entry  T
		rounds int
		c2     float64 // packets
	}
	sorted := make([]costed, len(list))
	for i, x := range list {
		c := costOf(x)
		sorted[i] = costed{x, c.C1, c.PacketC2()}
	}
	slices.SortStableFunc(sorted, func(a, b costed) int {
		return cmp.Or(cmp.Compare(a.rounds, b.rounds), cmp.Compare(a.c2, b.c2))
	})
	var front []T
	least := 0.0 // C2 of the last
	for _, x := range sorted {
		if len(front) == 0 || x.c2 < least {
			front, least = append(front, x.entry), x.c2
		}
	}
	return front
}
