// Package sim tells what a plan costs without running it: it counts messages
// and adds up model time. It has no clock and moves no bytes.
package sim

import (
	"fmt"
	"math"
	"time"

	"volley/plan"
)

// Cost is what a plan costs in the model of Wang and Raviv (arXiv:2205.05183,
// introduction): C1 and C2, counted from the schedules of all processors.
type Cost struct {
	C1     int                 // rounds
	C2     int                 // elements: the largest message of each round, summed
	C3     int                 // multiply-adds per symbol of the busiest processor, where no coefficient is zero
	Pieces int                 // elements that make up a packet
	Rounds []plan.RoundTraffic // in order, of all processors
}

// PacketC2 returns C2 in packets, and PacketC3 the multiply-adds per symbol of a packet,
// rounded up: C2 and C3 count those of pieces, where packets are cut.
func (c Cost) PacketC2() float64 { return float64(c.C2) / float64(max(1, c.Pieces)) }
func (c Cost) PacketC3() int     { return (c.C3 + max(1, c.Pieces) - 1) / max(1, c.Pieces) }

// Count counts the cost of p from one schedule per class of processors, so in
// time and memory independent of K where all processors are alike.
func Count(p plan.Plan) Cost {
	c := Cost{C1: p.Info().Rounds(), Pieces: p.Info().PieceCount()}
	c.Rounds = make([]plan.RoundTraffic, c.C1)
	for _, class := range p.Classes() {
		s := p.Schedule(class.Representative)
		c.C3 = max(c.C3, s.Terms)
		for t, r := range s.Rounds {
			c.Rounds[t].Messages += class.Count * len(r.Sends)
			for _, x := range r.Sends {
				c.Rounds[t].Largest = max(c.Rounds[t].Largest, x.Count)
			}
		}
	}
	for _, r := range c.Rounds {
		c.C2 += r.Largest
	}
	return c
}

// MultiplyAdds counts C3, the multiply-adds per symbol at the busiest processor:
// the terms of all combinations of its program. One processor of each class is
// looked at, so where A has zeros a sister of it may have a few terms more. The
// error is that of plan.Plan's Program.
func MultiplyAdds(p plan.Plan) (int, error) {
	most := 0
	for _, class := range p.Classes() {
		prog, err := p.Program(class.Representative)
		if err != nil {
			return 0, fmt.Errorf("sim: program of processor %d: %w", class.Representative, err)
		}
		most = max(most, prog.Terms())
	}
	return most, nil
}

// Model gives the time of a schedule: a message of d elements of W symbols takes
// Beta + d·W·Tau.
type Model struct {
	Beta    time.Duration // β, per message
	Tau     float64       // τ, seconds per symbol
	Gamma   float64       // γ, seconds per multiply-add of a symbol; 0: coding counts for nothing
	Symbols int64         // W, symbols per packet
}

// Time returns C1·β + C2·W·τ + C3·W·γ, where an element of a plan that cuts packets
// into pieces has so much fewer symbols, and the longest duration where that is
// longer.
func (m Model) Time(c Cost) time.Duration {
	pieces := int64(max(1, c.Pieces))
	element := math.Ceil(float64(m.Symbols) / float64(pieces)) // the last piece is filled up
	ns := float64(c.C1)*float64(m.Beta) + (float64(c.C2)*m.Tau+float64(c.C3)*m.Gamma)*element*float64(time.Second)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}
