package draw

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"volley/internal/comparison"
	"volley/internal/printable"
	"volley/plan"
)

const (
	mostRounds = 64 // of a picture of 2 m

	minColumn = 60.0
	maxColumn = 110.0

	// With more than manyProcessors columns are narrow. With those, or more than manyMessages in a round, only emphasised
	// arrows have labels, in at most maxRows rows.
	manyProcessors = 24
	manyMessages   = 100
	narrowColumn   = 28.0
	maxRows        = 6

	rowHeight = 11.0 // of a label
	circle    = 11.0 // its radius
)

// The colours of Okabe and Ito, which colour-blind people can tell apart. With more ports than colours, arrows are
// dashed.
var (
	portColours  = []uint32{0x000000, 0xD55E00, 0x0072B2, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9}
	spreadColour = uint32(0xF4EB71) // where x0 goes
	gatherColour = uint32(0x80C7EF) // where y0 comes from
	bandColours  = []uint32{0xF2F2F2, white}
)

// A schedule is what a picture shows of a plan, and where its columns and rows lie.
type schedule struct {
	info       plan.Info
	phases     []string // by round
	inputs     []string // by processor: "x3"
	outputs    []string // by processor: "y3"
	rounds     [][]*message
	source     int        // the processor that has x0, or -1
	sink       int        // the processor that has y0 in the end, or -1
	emphasised []*message // those that are emphasised last

	left, right float64 // the sides, half a column from the outer processors
	column      float64
	gutter      float64   // beyond each side, for what sticks out
	top, bottom float64   // the centres of the circles
	bands       []float64 // the upper edges of the rounds, and the lower one of the last
}

type message struct {
	plan.Message
	round int
	// span is how many columns the arrow goes to the right, or to the left when negative. One that leaves the drawing
	// comes in again at the other side.
	span    int
	content []plan.Content
	spreads bool     // it carries x0, as it is or in a sum
	gathers bool     // it goes into y0
	lines   []string // of the label; none where it has none, or no room for it
	row     int      // of the last line, counted upwards from the tails of the arrows
}

// focus reports whether the message is part of a tree that is emphasised.
func (m *message) focus() bool { return m.spreads || m.gathers }

// width is that of the arrow.
func (m *message) width() float64 {
	if m.focus() {
		return 2
	}
	return 1
}

// Schedule draws the schedule of p, which has to be valid: processors are columns, rounds are rows, and messages are
// arrows labelled with what they carry, in the words of [plan.Content.String]. Two trees are emphasised: where x0 goes
// and where y0 comes from. The error is that of [plan.Follow], or says that there are too many processors or rounds.
func Schedule(p plan.Plan) (*Picture, error) {
	i := p.Info()
	if i.Processors > comparison.MostDrawn || i.Rounds() > mostRounds {
		return nil, fmt.Errorf("%d processors in %d rounds are too many to draw: want at most %d processors and %d rounds", i.Processors, i.Rounds(), comparison.MostDrawn, mostRounds)
	}
	s, err := collect(p)
	if err != nil {
		return nil, err
	}
	s.layOut()
	return s.draw(), nil
}

// collect reads the schedule of a plan.
func collect(p plan.Plan) (*schedule, error) {
	m, err := plan.Materialize(p)
	if err != nil {
		return nil, err
	}
	flow, err := plan.Follow(m)
	if err != nil {
		return nil, err
	}
	s := &schedule{info: m.Common, phases: m.Common.PhaseOf()}
	first := func(list []int) bool { return slices.Contains(list, 0) }
	s.source, s.sink = slices.IndexFunc(m.Rows, first), slices.IndexFunc(m.Columns, first)
	names := func(name func(int) string, pieces []int) (text string) {
		var list []int
		for _, i := range pieces {
			list = append(list, i/max(1, s.info.Pieces))
		}
		slices.Sort(list)
		for _, r := range plan.Runs(slices.Compact(list)) {
			text += " " + r.Named(name)
		}
		return strings.TrimSpace(text)
	}
	var namer plan.Info // names whole packets
	for k := range m.Programs {
		s.inputs = append(s.inputs, names(namer.InitialName, m.Rows[k]))
		s.outputs = append(s.outputs, names(namer.CodedName, m.Columns[k]))
	}
	for t, messages := range m.Messages() {
		slices.SortFunc(messages, func(x, y plan.Message) int {
			return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.Src, y.Src))
		})
		s.rounds = append(s.rounds, nil)
		for _, x := range messages {
			m := &message{Message: x, round: t, span: x.Dst - x.Src}
			for i, slot := range x.Slots {
				sent := flow.Content(x.Src, slot)
				m.content = append(m.content, sent)
				m.spreads = m.spreads || first(sent.Rows)
				m.gathers = m.gathers || len(sent.Rows) > 0 && first(flow.Content(x.Dst, x.Received+i).Columns)
			}
			s.rounds[t] = append(s.rounds[t], m)
		}
		// Where all processors send equally far, arrows take the short way around, and are parallel; two that cross say more.
		shifts, k := s.shifts(t), s.info.Processors
		for _, m := range s.rounds[t] {
			if far, ok := shifts[m.Port]; ok && k > 2 {
				m.span = far - 2*far/(k+1)*k
			}
		}
	}
	s.emphasised = slices.Concat(s.rounds...)
	slices.SortStableFunc(s.emphasised, func(a, b *message) int { return cmp.Compare(a.width(), b.width()) })
	return s, nil
}

// shifts returns, by port, how far all processors send in a round, where that is equally far.
func (s *schedule) shifts(round int) map[int]int {
	k := s.info.Processors
	count, far := map[[2]int]int{}, map[int]int{}
	for _, m := range s.rounds[round] {
		key := [2]int{m.Port, (m.Dst - m.Src + k) % k}
		if count[key]++; count[key] == k {
			far[m.Port] = key[1]
		}
	}
	return far
}

// heading returns what stands at the left of a round, such as "k → k+3, k+6" where all processors do the same.
func (s *schedule) heading(round int) []string {
	lines := []string{fmt.Sprint("round ", round), s.phases[round]}
	if far := s.shifts(round); len(far) > 0 && len(far)*s.info.Processors == len(s.rounds[round]) {
		var targets []string
		for _, port := range slices.Sorted(maps.Keys(far)) {
			targets = append(targets, fmt.Sprintf("k+%d", far[port]))
		}
		lines = append(lines, fit("k → "+strings.Join(targets, ", "), 110, fontText))
	}
	return lines
}

// layOut chooses the columns by the widths of the labels, and then the rounds by the rows that the labels take.
func (s *schedule) layOut() {
	k := s.info.Processors
	narrow := k > manyProcessors
	crowded := narrow || slices.ContainsFunc(s.rounds, func(list []*message) bool { return len(list) > manyMessages })
	widest, headings := 0.0, 0.0
	for t, list := range s.rounds {
		for _, line := range s.heading(t) {
			headings = max(headings, 8+width(line, fontText))
		}
		for _, m := range list {
			if !crowded {
				m.lines = label(m.content, 2, 88)
			} else if m.focus() {
				m.lines = label(m.content, 1, 70)
			}
			for _, line := range m.lines {
				widest = max(widest, 10+width(line, fontLabel))
			}
		}
	}
	sides := 12 + width(fmt.Sprint("from ", k-1), fontLabel)
	s.column = narrowColumn
	if !narrow {
		s.column = max(minColumn, widest, min(maxColumn, (488-headings-2*sides)/float64(k)))
	}
	s.gutter = max(sides, widest-s.column/2)
	s.left = margin + headings + s.gutter
	s.right = s.left + float64(k)*s.column
	s.top = margin + 2*fontTitle + fontText + 2*circle
	y := s.top + circle + 10
	for t, list := range s.rounds {
		s.bands = append(s.bands, y)
		s.layOutLabels(list, crowded)
		span := 0
		for _, m := range list {
			span = max(span, m.span, -m.span)
		}
		y = s.departs(t) + 64 + 6*float64(min(span, 16))
	}
	s.bands = append(s.bands, y)
	s.bottom = y + circle + 10
}

// layOutLabels places each label of a round next to the tail of its arrow, on the side to which that goes, in the
// lowest row where it does not touch another. Where it is crowded some may find no place.
func (s *schedule) layOutLabels(list []*message, crowded bool) {
	var taken []box
	for _, m := range list {
		if len(m.lines) == 0 {
			continue
		}
		x, anchor := s.tail(m)
		b := box{math.Inf(1), 0, math.Inf(-1), float64(len(m.lines))}
		for _, line := range m.lines {
			c := covers(x, 0, anchor, fontLabel, line)
			b.left, b.right = min(b.left, c.left-2), max(b.right, c.right+2)
		}
		for ; slices.ContainsFunc(taken, b.overlaps); m.row++ {
			b.top++
			b.bottom++
		}
		if crowded && m.row >= maxRows {
			m.lines = nil
			continue
		}
		taken = append(taken, b)
	}
}

// tail returns where the label of a message begins or ends.
func (s *schedule) tail(m *message) (x, anchor float64) {
	if m.span < 0 {
		return s.x(m.Src) - 5, end
	}
	return s.x(m.Src) + 5, start
}

func (s *schedule) x(processor int) float64 { return s.left + (float64(processor)+0.5)*s.column }

// departs and arrives are the heights at which a round's arrows begin, below the labels, and end.
func (s *schedule) departs(round int) float64 {
	rows := 0
	for _, m := range s.rounds[round] {
		rows = max(rows, m.row+len(m.lines))
	}
	return s.bands[round] + 8 + rowHeight*float64(rows)
}
func (s *schedule) arrives(round int) float64 { return s.bands[round+1] - 4 }

// A segment is a straight line.
type segment struct{ start, end point }

// shift moves the segment sideways.
func (s segment) shift(distance float64) segment {
	dx, dy := s.end.x-s.start.x, s.end.y-s.start.y
	n := math.Hypot(dx, dy)
	x, y := -distance*dy/n, distance*dx/n
	return segment{point{s.start.x + x, s.start.y + y}, point{s.end.x + x, s.end.y + y}}
}

// shorter cuts so much off the end of the segment.
func (s segment) shorter(distance float64) segment {
	keep := 1 - distance/math.Hypot(s.end.x-s.start.x, s.end.y-s.start.y)
	return segment{s.start, point{s.start.x + keep*(s.end.x-s.start.x), s.start.y + keep*(s.end.y-s.start.y)}}
}

// pieces returns the lines of an arrow, the last with its head. The drawing is a cylinder, cut open at the sides.
func (s *schedule) pieces(m *message) []segment {
	source, target := point{s.x(m.Src), s.departs(m.round)}, point{s.x(m.Dst), s.arrives(m.round)}
	exitX, entryX := s.right, s.left
	if m.Src+m.span == m.Dst {
		return []segment{{source, target}}
	}
	if m.span < 0 {
		exitX, entryX = s.left, s.right
	}
	y := source.y + (exitX-source.x)/(float64(m.span)*s.column)*(target.y-source.y)
	return []segment{{source, point{exitX, y}}, {point{entryX, y}, target}}
}

// arrow draws a segment of an arrow.
func (p *Picture) arrow(s segment, port int, width float64, faint, head bool) {
	colour := portColours[port%len(portColours)]
	if faint {
		colour = colour>>1&0x7F7F7F + 0x808080 // half of it on white
	}
	if head {
		base, half := s.shorter(5+2*width), 1.5+1.2*width
		wing := segment{base.end, s.end}
		p.fill(colour, s.end, wing.shift(half).start, wing.shift(-half).start)
		s = base
	}
	p.line(colour, width, s.start, s.end)
	if n := float64(port / len(portColours)); n > 0 {
		p.shapes[len(p.shapes)-1].dashes = []float64{2 + 3*n, 3}
	}
}

// draw draws from what lies lowest to what lies on top.
func (s *schedule) draw() *Picture {
	p := &Picture{title: s.title()}
	p.width = max(520, s.right+s.gutter+margin, covers(margin, 0, start, fontTitle, p.title).right+margin)
	p.text(margin, margin+fontTitle, start, fontTitle, ink, p.title)
	for t := range s.rounds {
		p.fill(bandColours[t%2], box{margin, s.bands[t], s.right + s.gutter, s.bands[t+1]}.corners()...)
		for i, line := range s.heading(t) {
			p.text(margin+8, s.bands[t]+18+15*float64(i), start, fontText, ink, line)
		}
	}
	for k := range s.inputs {
		p.line(0xBBBBBB, 1, point{s.x(k), s.top}, point{s.x(k), s.bottom})
	}
	s.trails(p)
	wraps := false
	for _, m := range s.emphasised {
		pieces := s.pieces(m)
		wraps = wraps || len(pieces) > 1
		for i, piece := range pieces {
			p.arrow(piece, m.Port, m.width(), !m.focus(), i == len(pieces)-1)
		}
	}
	for k := range s.inputs {
		for i, y := range []float64{s.top, s.bottom} {
			place := [][]point{{{s.x(k), y}}}
			p.shapes = append(p.shapes, shape{paths: place, colour: white, radius: circle}, shape{paths: place, colour: 0x333333, width: 1, radius: circle})
			p.text(s.x(k), y+4, middle, fontText, ink, fmt.Sprint(k))
			p.text(s.x(k), y+[]float64{-circle - 6, circle + fontText + 3}[i], middle, fontText, ink, fit([]string{s.inputs[k], s.outputs[k]}[i], s.column-4, fontText))
		}
	}
	s.labels(p)
	s.legend(p, wraps)
	return p
}

func (s *schedule) title() string {
	name := s.info.Algorithm
	if s.info.Parameters != "" {
		name += " (" + s.info.Parameters + ")"
	}
	return fmt.Sprintf("%s: K = %d, p = %d, field %s, %s", name, s.info.Processors, s.info.Ports, s.info.Field.Name(), printable.Count(s.info.Rounds(), "round"))
}

// trails emphasises the arrows of the two trees, and what a tree takes of each processor's line: from its first
// message there to the last one from there.
func (s *schedule) trails(p *Picture) {
	for i, colour := range []uint32{spreadColour, gatherColour} {
		side := float64(1 - 2*i)
		starts, ends := slices.Repeat([]float64{math.Inf(1)}, len(s.inputs)), make([]float64, len(s.inputs))
		for _, m := range s.emphasised {
			if !m.spreads && i == 0 || !m.gathers && i == 1 {
				continue
			}
			starts[m.Dst], ends[m.Src] = min(starts[m.Dst], s.arrives(m.round)), max(ends[m.Src], s.departs(m.round))
			pieces := s.pieces(m)
			pieces[len(pieces)-1] = pieces[len(pieces)-1].shorter(5)
			for _, piece := range pieces {
				width := 9.0
				if m.spreads && m.gathers {
					piece, width = piece.shift(3*side), 5
				}
				p.line(colour, width, piece.start, piece.end)
			}
		}
		if i == 0 && s.source >= 0 {
			starts[s.source] = s.top + circle
		}
		if i == 1 && s.sink >= 0 {
			ends[s.sink] = s.bottom - circle
		}
		for k := range starts {
			if x := s.x(k) - 3*side; starts[k] < ends[k] {
				p.line(colour, 5, point{x, starts[k]}, point{x, ends[k]})
			}
		}
	}
}

// labels writes what the messages carry, and at the sides where arrows go, above their ends, and where they come from,
// below their beginnings, as far as there is room.
func (s *schedule) labels(p *Picture) {
	var taken []box
	put := func(m *message, x, y, anchor float64, text string) {
		b := covers(x, y, anchor, fontLabel, text)
		taken = append(taken, b)
		p.fill(bandColours[m.round%2], box{b.left - 1, b.top, b.right + 1, b.bottom}.corners()...)
		p.text(x, y, anchor, fontLabel, portColours[m.Port%len(portColours)], text)
	}
	for _, m := range s.emphasised {
		x, anchor := s.tail(m)
		for i, line := range m.lines {
			put(m, x, s.departs(m.round)-4-rowHeight*float64(m.row+len(m.lines)-1-i), anchor, line)
		}
	}
	for _, m := range slices.Backward(s.emphasised) {
		pieces := s.pieces(m)
		if len(pieces) == 1 || len(m.lines) == 0 {
			continue
		}
		for i, place := range []point{pieces[0].end, pieces[1].start} {
			x, anchor := place.x+5, start
			if place.x == s.left {
				x, anchor = place.x-5, end
			}
			y, text := place.y+8*float64(i), fmt.Sprint([]string{"to ", "from "}[i], []int{m.Dst, m.Src}[i])
			if !slices.ContainsFunc(taken, covers(x, y, anchor, fontLabel, text).overlaps) {
				put(m, x, y, anchor, text)
			}
		}
	}
}

// legend explains what there is to be explained, below the drawing, and gives the picture its height.
func (s *schedule) legend(p *Picture, wraps bool) {
	x, y := margin, s.bottom+circle+2*fontText+26
	entry := func(text string, sample func(segment)) {
		w := 54 + width(text, fontText)
		if x > margin && x+w > p.width {
			x, y = margin, y+20
		}
		sample(segment{point{x + 4, y - 4}, point{x + 28, y - 4}})
		p.text(x+36, y, start, fontText, ink, text)
		x += w
	}
	for i, text := range []string{"where " + s.info.InitialName(0) + " goes", "where " + s.info.CodedName(0) + " comes from"} {
		entry(text, func(line segment) { p.line([]uint32{spreadColour, gatherColour}[i], 9, line.start, line.end) })
	}
	for port := range s.info.Ports {
		if s.info.Ports > 1 {
			entry(fmt.Sprint("port ", port), func(line segment) { p.arrow(line, port, 1.5, false, true) })
		}
	}
	notes := "Columns are processors, rows are rounds. x: initial packets; y: coded packets. y1(x0): the part of y1 that x0 makes."
	if wraps {
		notes += " Arrows that leave at one side come in at the other."
	}
	p.height = p.lines(margin, y+22, p.width-2*margin, notes) + margin - fontText
}
