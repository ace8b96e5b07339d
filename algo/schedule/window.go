package schedule

import (
	"volley/field"
	"volley/plan"
)

// A WindowRound is one round of a window schedule: the window of offsets grows from
// [0, from) to [0, to), or shrinks the other way, and chunks hold the offsets in
// between, one for each port.
type WindowRound struct {
	From, To int
	Chunks   []Chunk
}

// A Chunk is the run of offsets [at, at+count).
type Chunk struct{ At, Count int }

// WindowRounds grows a window from 1 to m in clog(m) rounds: each round takes it
// (p+1)-fold, only the last one stops short. The new offsets are dealt to the
// ports in chunks of equal size, so that the round's largest message has
// ⌈(to-from)/p⌉ elements and all of them together ⌈(m-1)/p⌉.
func WindowRounds(m, ports int) []WindowRound { return WindowRoundsFrom(1, m, ports) }

// WindowRoundsFrom grows a window from that size on.
func WindowRoundsFrom(from, m, ports int) []WindowRound {
	var list []WindowRound
	for from < m {
		to := min(m, from*(ports+1))
		s := WindowRound{From: from, To: to}
		size := Ceil(to-from, ports)
		for at := from; at < to; at += size {
			s.Chunks = append(s.Chunks, Chunk{at, min(size, to-at)})
		}
		list = append(list, s)
		from = to
	}
	return list
}

// Cut returns the part of the chunk below limit; its count is 0 or less when
// there is none.
func (c Chunk) Cut(limit int) Chunk { return Chunk{c.At, min(c.Count, limit-c.At)} }

// A Window is the slots of the packets of the members 0, 1, … places back.
type Window []plan.Slot

// Sum returns what the window adds to the result of the member offset places on.
func (w Window) Sum(g Group, offset int) []Addend {
	w = w[:max(0, min(len(w), g.Size-offset))]
	if len(w) == 0 {
		return nil
	}
	return Weighted(w, func(i int) field.Element { return g.At(g.Around(-i), g.Around(offset)) })
}

// Gather runs the rounds as an allgather of windows: it returns the slots of the
// packets of the members 0 … most-1 strides back. Rounds that would take the window
// beyond most are empty.
func Gather(b *Builder, g Group, stages []WindowRound, stride, most int, in plan.Slot) Window {
	held := append(make(Window, 0, most), in)
	for _, st := range stages {
		for port, c := range st.Chunks {
			if c = c.Cut(most); c.Count > 0 {
				b.Send(port, g.Member(g.Around(c.At*stride)), held[:c.Count:c.Count])
			}
		}
		for port, c := range st.Chunks {
			if c = c.Cut(most); c.Count > 0 {
				held = append(held, b.Receive(port, g.Member(g.Around(-c.At*stride)), c.Count)...)
			}
		}
		b.EndRound()
	}
	return held
}
