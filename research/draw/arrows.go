package draw

import (
	"fmt"
	"math"
	"slices"
)

// label returns the lines of a message's label; there are none when it is to
// have no label.
func (f *frame) label(m *message) []string {
	switch {
	case f.s.info.Processors <= manyProcessors:
		return shorten(m.content, 2, wideLabel)
	case m.focus():
		return shorten(m.content, 1, narrowLabel)
	}
	return nil
}

// A tag is the place of a label: next to the tail of its arrow, on the side to
// which that goes.
type tag struct {
	message *message
	lines   []string
	row     int // of the last line, counted upwards from the tails
	x       float64
	anchor  string
}

// rows returns how many rows of text the tags take.
func rows(tags []tag) int {
	n := 0
	for _, t := range tags {
		n = max(n, t.row+len(t.lines))
	}
	return n
}

// tagRound places the labels of a round, port by port, each in the lowest row
// where it does not touch another. Where there are many processors some may
// find no place.
func (f *frame) tagRound(round int) []tag {
	var tags []tag
	var taken []box
	for port := range f.s.info.Ports {
		for i := range f.s.rounds[round] {
			m := &f.s.rounds[round][i]
			t := tag{message: m, lines: f.label(m), x: f.x(m.src) + 5, anchor: "start"}
			if m.port != port || len(t.lines) == 0 {
				continue
			}
			if m.span < 0 {
				t.x, t.anchor = f.x(m.src)-5, "end"
			}
			for slices.ContainsFunc(taken, t.box().overlaps) {
				t.row++
			}
			if f.s.info.Processors <= manyProcessors || t.row < maxRows {
				tags = append(tags, t)
				taken = append(taken, t.box())
			}
		}
	}
	return tags
}

// box returns what the tag covers, where rows are numbers.
func (t tag) box() box {
	b := box{left: math.Inf(1), right: math.Inf(-1), top: float64(t.row), bottom: float64(t.row + len(t.lines))}
	for _, line := range t.lines {
		x := text{at: point{x: t.x}, anchor: t.anchor, size: fontLabel, bold: true, text: line}.box()
		b.left, b.right = min(b.left, x.left), max(b.right, x.right)
	}
	return b
}

func (f *frame) addLabels(l *layout, round int) {
	for _, t := range f.tags[round] {
		for i, line := range t.lines {
			row := t.row + len(t.lines) - 1 - i
			l.labels = append(l.labels, text{
				at:     point{t.x, f.departs(round) - 4 - lineHeight*float64(row)},
				anchor: t.anchor, size: fontLabel, colour: colour(t.message.port),
				bold: t.message.focus(), halo: true, text: line,
			})
		}
	}
}

func (f *frame) addArrows(l *layout, round int) {
	for i := range f.s.rounds[round] {
		m := &f.s.rounds[round][i]
		l.arrows = append(l.arrows, arrow{m, f.pieces(m)})
	}
}

// pieces returns the lines of an arrow. The drawing is a cylinder, cut open at
// the sides.
func (f *frame) pieces(m *message) []segment {
	from := point{f.x(m.src), f.departs(m.round)}
	to := point{f.x(m.dst), f.arrives(m.round)}
	out, in := f.right, f.left
	switch column := m.src + m.span; {
	case column < 0:
		out, in = f.left, f.right
	case column < f.s.info.Processors:
		return []segment{{from, to}}
	}
	part := (out - from.x) / (float64(m.span) * f.column)
	y := from.y + part*(to.y-from.y)
	return []segment{{from, point{out, y}}, {point{in, y}, to}}
}

// addSides says at the sides where arrows go, above their ends, and where they
// come from, below their beginnings, as far as there is room.
func (f *frame) addSides(l *layout, focus bool) {
	add := func(m *message, at point, dy float64, what string) {
		t := text{at: point{at.x + 5, at.y + dy}, size: fontSide, colour: colour(m.port), text: what}
		if at.x == f.left {
			t.at.x, t.anchor = at.x-5, "end"
		}
		covers := func(o text) bool { return o.box().overlaps(t.box()) }
		if len(f.label(m)) > 0 && !slices.ContainsFunc(l.labels, covers) && !slices.ContainsFunc(l.sides, covers) {
			l.sides = append(l.sides, t)
		}
	}
	for _, a := range l.arrows {
		if m := a.message; len(a.pieces) == 2 && m.focus() == focus {
			add(m, a.pieces[0].to, 0, fmt.Sprint("to ", m.dst))
			add(m, a.pieces[1].from, fontSide-1, fmt.Sprint("from ", m.src))
		}
	}
}

// addTrails emphasises the arrows of the two trees and the stretches of life
// lines between them.
func (f *frame) addTrails(l *layout) {
	for _, a := range l.arrows {
		m := a.message
		both := m.spreads && m.gathers
		by := 0.0
		if both {
			by = 3
		}
		for i, s := range a.pieces {
			if i == len(a.pieces)-1 {
				s = s.shorter(5)
			}
			if m.spreads {
				l.trails = append(l.trails, trail{spread, s.shift(by), !both})
			}
			if m.gathers {
				l.trails = append(l.trails, trail{gather, s.shift(-by), !both})
			}
		}
	}
	f.addStretches(l, spread, f.s.source, -1, func(m *message) bool { return m.spreads })
	f.addStretches(l, gather, -1, f.s.sink, func(m *message) bool { return m.gathers })
}

// addStretches emphasises what a tree takes of each life line: from its first
// message there to the last one from there. The tree may begin at a source or
// end at a sink.
func (f *frame) addStretches(l *layout, k kind, source, sink int, in func(*message) bool) {
	from := slices.Repeat([]float64{math.Inf(1)}, f.s.info.Processors)
	to := make([]float64, f.s.info.Processors)
	if source >= 0 {
		from[source] = f.top + radius
	}
	for t, list := range f.s.rounds {
		for i := range list {
			if m := &list[i]; in(m) {
				from[m.dst] = min(from[m.dst], f.arrives(t))
				to[m.src] = max(to[m.src], f.departs(t))
			}
		}
	}
	if sink >= 0 {
		to[sink] = f.bottom - radius
	}
	by := -3.0 // beside the line, as both trees may be there
	if k == gather {
		by = 3
	}
	for proc := range from {
		if from[proc] < to[proc] {
			x := f.x(proc) + by
			l.trails = append(l.trails, trail{k, segment{point{x, from[proc]}, point{x, to[proc]}}, false})
		}
	}
}
