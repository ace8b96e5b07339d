package algo

import "volley/plan"

// A stage is one round of a window schedule: the window of offsets grows from
// [0, from) to [0, to), or shrinks the other way, and chunks hold the offsets in
// between, one for each port.
type stage struct {
	from, to int
	chunks   []chunk
}

// A chunk is the run of offsets [at, at+count).
type chunk struct{ at, count int }

// stages grows a window from 1 to m in clog(m) rounds: each round takes it
// (p+1)-fold, only the last one stops short. The new offsets are dealt to the
// ports in chunks of equal size, so that the round's largest message has
// ⌈(to-from)/p⌉ elements and all of them together ⌈(m-1)/p⌉.
func stages(m, ports int) []stage { return stagesFrom(1, m, ports) }

// stagesFrom grows a window from that size on.
func stagesFrom(from, m, ports int) []stage {
	var list []stage
	for from < m {
		to := min(m, from*(ports+1))
		s := stage{from: from, to: to}
		size := ceil(to-from, ports)
		for at := from; at < to; at += size {
			s.chunks = append(s.chunks, chunk{at, min(size, to-at)})
		}
		list = append(list, s)
		from = to
	}
	return list
}

// cut returns the part of the chunk below limit; its count is 0 or less when
// there is none.
func (c chunk) cut(limit int) chunk { return chunk{c.at, min(c.count, limit-c.at)} }

// A window is the slots of the packets of the members 0, 1, … places back.
type window []plan.Slot

// sum returns what the window adds to the result of the member so far on.
func (w window) sum(g Group, offset int) []Addend {
	w = w[:max(0, min(len(w), g.Size-offset))]
	return Combined(len(w), func() plan.Combination {
		c := make(sum, 0, len(w))
		for i, slot := range w {
			c.add(slot, g.At(g.around(-i), g.around(offset)))
		}
		return plan.Combination(c)
	})
}

// gather runs the stages as an allgather of windows: it returns the slots of the
// packets of the members 0 … window-1 strides back. Stages beyond the window are
// empty rounds.
func gather(b *Builder, g Group, stages []stage, stride, most int, in plan.Slot) window {
	held := append(make(window, 0, most), in)
	for _, st := range stages {
		for port, c := range st.chunks {
			if c = c.cut(most); c.count > 0 {
				b.Send(port, g.Member(g.around(c.at*stride)), held[:c.count:c.count])
			}
		}
		for port, c := range st.chunks {
			if c = c.cut(most); c.count > 0 {
				held = append(held, b.Receive(port, g.Member(g.around(-c.at*stride)), c.count)...)
			}
		}
		b.EndRound()
	}
	return held
}
