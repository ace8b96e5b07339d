package compile

import (
	"cmp"
	"slices"
)

// RoundsAhead is how many rounds may be under way: what a later message carries may be there
// long before.
const RoundsAhead = 8

// sources appends what has to be there before a value can be computed: receive i as i, and an
// earlier step s as ^s.
func (c *compiler) sources(list []int, id int32, seen map[int32]bool) []int {
	c.poller.Steps(1)
	v := &c.values[id]
	switch {
	case v.kind == receivedValue:
		return append(list, int(v.receive))
	case v.step >= 0:
		return append(list, ^int(v.step))
	case seen[id]:
		return list
	}
	seen[id] = true
	for _, t := range c.termsOf(id) {
		list = c.sources(list, t.value, seen)
	}
	return list
}

// sortedSources returns a list with what has to be there before values can be computed, each once.
func (c *compiler) sortedSources(list []int, values ...int32) []int {
	seen := map[int32]bool{}
	c.found = append(c.found[:0], list...)
	for _, id := range values {
		c.found = c.sources(c.found, id, seen)
	}
	c.poller.Steps(len(c.found))
	slices.Sort(c.found)
	return slices.Clone(slices.Compact(c.found))
}

// waits reports whether a value is a sum that no step has yet.
func (c *compiler) waits(id int32) bool {
	v := &c.values[id]
	return v.kind == sumValue && v.step < 0
}

// assignSteps makes a step of the messages of a round that need the same, those that need the
// least first, and a last one of the outputs that need others. Every value is computed in the first
// step that needs it.
func (c *compiler) assignSteps() {
	x := c.x
	receives, sends := 0, 0
	for _, r := range c.rounds {
		receives, sends = receives+len(r.receives), sends+len(r.sends)
	}
	x.Receives, x.Sends = make([]Receive, 0, receives), make([]Send, 0, sends)
	for _, r := range c.rounds {
		for _, m := range r.receives {
			c.poller.Steps(1 + int(m.Count))
			for k := range m.Count {
				c.values[m.Element+k].receive = int32(len(x.Receives))
			}
			x.Receives = append(x.Receives, m)
		}
	}
	var (
		ahead []int // the last receives so many rounds ago: a rank that needs none sends no faster than others do
		due   int
	)
	for _, r := range c.rounds {
		c.poller.Steps(1 + len(r.sends) + len(r.receives))
		type stream struct{ rank, port int32 }
		streams := map[stream][]int{} // what its messages need, which go in order
		for _, m := range r.sends {
			key := stream{m.Rank, m.Port}
			streams[key] = c.sortedSources(streams[key], m.Slots...)
		}
		needs, order := make([][]int, len(r.sends)), make([]int, len(r.sends))
		for k, m := range r.sends {
			needs[k], order[k] = streams[stream{m.Rank, m.Port}], k
		}
		slices.SortStableFunc(order, func(a, b int) int {
			c.poller.Steps(1 + min(len(needs[a]), len(needs[b])))
			return cmp.Or(len(needs[a])-len(needs[b]), slices.Compare(needs[a], needs[b]))
		})
		for ; due < len(x.Receives) && int(x.Receives[due].Round)+RoundsAhead <= r.number; due++ {
			if due > 0 && x.Receives[due].Round > x.Receives[due-1].Round {
				ahead = ahead[:0]
			}
			ahead = append(ahead, due)
		}
		earlier := make([][]int, len(c.ends)) // what they need as the round begins
		c.poller.Steps(len(c.ends))
		for k, id := range c.ends {
			if len(order) > 0 && c.waits(id) {
				earlier[k] = c.sortedSources(nil, id)
			}
		}
		for len(order) > 0 {
			n := 1
			for n < len(order) && slices.Equal(needs[order[n]], needs[order[0]]) {
				c.poller.Steps(1 + len(needs[order[0]]))
				n++
			}
			var values []int32
			first := len(x.Sends)
			for _, k := range order[:n] {
				values = append(values, r.sends[k].Slots...)
				x.Sends = append(x.Sends, r.sends[k])
			}
			c.poller.Steps(len(c.ends))
			for k, id := range c.ends { // of the same sources, so that these are read once
				// Steps of this round add sources that no message of it has: what differed before differs still.
				unchanged := slices.Equal(earlier[k], needs[order[0]])
				if unchanged && c.waits(id) && slices.Equal(c.sortedSources(nil, id), needs[order[0]]) {
					values = append(values, id)
				}
			}
			c.addStep(Span{first, len(x.Sends)}, values, slices.Concat(needs[order[0]], ahead))
			order = order[n:]
		}
	}
	var received []int
	for n := range x.Receives {
		received = append(received, n)
	}
	c.addStep(Span{len(x.Sends), len(x.Sends)}, c.ends, received)
	x.Steps = slices.Clone(x.Steps) // without room for more
}

// addStep adds a step that is to have values, and what they take, before sends.
func (c *compiler) addStep(sends Span, values []int32, needs []int) {
	x, number := c.x, len(c.steps)
	var demand func(id int32)
	demand = func(id int32) {
		c.poller.Steps(1)
		v := &c.values[id]
		switch {
		case v.kind != sumValue || int(v.step) == number:
			return
		case v.step >= 0:
			needs = append(needs, ^int(v.step))
			return
		}
		v.step = int32(number)
		for _, t := range c.termsOf(id) {
			demand(t.value)
			v.depth = max(v.depth, 1+c.values[t.value].depth)
		}
	}
	for _, id := range values {
		demand(id)
	}
	c.poller.Steps(len(needs))
	slices.Sort(needs)
	needs = slices.Compact(needs)
	for _, n := range needs {
		if n >= 0 {
			x.Receives[n].Wakes = append(x.Receives[n].Wakes, number)
		} else {
			x.Steps[^n].Wakes = append(x.Steps[^n].Wakes, number)
		}
	}
	c.steps = append(c.steps, values)
	x.Steps = append(x.Steps, Step{Needs: int32(len(needs)), Sends: sends})
}
