package sim

import (
	"context"
	"errors"
	"fmt"

	"volley/plan"
)

// A Spread is a quantity that each processor has an amount of.
type Spread struct {
	Most    int     // of the processor that has the most
	Busiest int     // the first such processor looked at
	Total   float64 // of all processors
	Mean    float64
}

// add counts the amount of a processor that stands for so many.
func (s *Spread) add(amount, proc, count int) {
	if amount > s.Most {
		s.Most, s.Busiest = amount, proc
	}
	s.Total += float64(amount) * float64(count)
}

// Load is what the processors of a plan send, receive and hold.
type Load struct {
	Sent     Spread // elements
	Received Spread // elements
	Messages Spread // sent
	Memory   Spread // slots, when nothing is forgotten
}

// LoadOf counts the load of p from one schedule per class of processors. It holds one
// schedule at a time, so K may be large also where no two processors are alike. The
// error is that of ctx.
func LoadOf(ctx context.Context, p plan.Plan) (Load, error) {
	var l Load
	classes := p.Classes()
	for i, class := range classes {
		if i%1024 == 0 && ctx.Err() != nil {
			return l, context.Cause(ctx)
		}
		s := p.Schedule(class.Representative)
		sent, received, messages := 0, 0, 0
		for _, r := range s.Rounds {
			messages += len(r.Sends)
			for _, x := range r.Sends {
				sent += x.Count
			}
			for _, x := range r.Recvs {
				received += x.Count
			}
		}
		l.Sent.add(sent, class.Representative, class.Count)
		l.Received.add(received, class.Representative, class.Count)
		l.Messages.add(messages, class.Representative, class.Count)
		l.Memory.add(s.Slots, class.Representative, class.Count)
	}
	for _, s := range []*Spread{&l.Sent, &l.Received, &l.Messages, &l.Memory} {
		s.Mean = s.Total / float64(p.Info().Processors)
	}
	return l, nil
}

// Work is what the programs of a plan compute, and what they have to keep.
type Work struct {
	MultiplyAdds Spread // per symbol
	Live         Spread // slots at a time, when a packet is forgotten after its last use
}

// ErrTooLarge is wrapped by the errors of what would take too much memory to find out.
var ErrTooLarge = errors.New("too large")

// mostTerms is how many terms a program may have for [WorkOf] to look at it: about
// a gigabyte.
const mostTerms = 1 << 24

// WorkOf counts the work of p from one program per class of processors, of which
// it holds one at a time. Where A has zeros other processors of a class may compute a
// little more. The errors are those of ctx and of plan.Plan's Program; one that wraps
// [ErrTooLarge] is for a processor with more than some 10^7 multiply-adds.
func WorkOf(ctx context.Context, p plan.Plan) (Work, error) {
	var w Work
	for _, class := range p.Classes() {
		if ctx.Err() != nil {
			return w, context.Cause(ctx)
		}
		if n := p.Schedule(class.Representative).Terms; n > mostTerms {
			return w, fmt.Errorf("sim: program of processor %d: %w: it may have %.1e multiply-adds per symbol", class.Representative, ErrTooLarge, float64(n))
		}
		prog, err := p.Program(class.Representative)
		if err != nil {
			return w, fmt.Errorf("sim: program of processor %d: %w", class.Representative, err)
		}
		w.MultiplyAdds.add(prog.Terms(), class.Representative, class.Count)
		w.Live.add(live(prog), class.Representative, class.Count)
	}
	for _, s := range []*Spread{&w.MultiplyAdds, &w.Live} {
		s.Mean = s.Total / float64(p.Info().Processors)
	}
	return w, nil
}

// live returns the most slots that the program needs at a time. A slot is needed from
// where it is filled to its last use, an output to the end; a combination while it
// is computed next to its terms, and what is received next to what is sent.
func live(p *plan.Program) int {
	// Steps are the own packets, each combination, each exchange, and the end.
	var filled []int // slots that a step fills
	var last []int   // by slot: the step after which it may be forgotten
	fill := func(n int) {
		for range n {
			last = append(last, len(filled))
		}
		filled = append(filled, n)
	}
	compute := func(list []plan.Combination) {
		for _, c := range list {
			for _, term := range c {
				last[term.Slot] = len(filled)
			}
			fill(1)
		}
	}
	fill(p.Inputs)
	for _, r := range p.Rounds {
		compute(r.Compute)
		for _, x := range r.Sends {
			for _, slot := range x.Slots {
				last[slot] = len(filled)
			}
		}
		received := 0
		for _, x := range r.Recvs {
			received += x.Count
		}
		fill(received)
	}
	compute(p.Compute)
	for _, slot := range p.Outputs {
		last[slot] = len(filled)
	}
	fill(0)

	forgotten := make([]int, len(filled))
	for _, step := range last {
		forgotten[step]++
	}
	most, now := 0, 0
	for step := range filled {
		now += filled[step]
		most = max(most, now)
		now -= forgotten[step]
	}
	return most
}
