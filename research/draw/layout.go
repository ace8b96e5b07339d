package draw

import "fmt"

// Sizes in SVG units.
const (
	margin     = 16.0
	fontTitle  = 15.0
	fontText   = 12.0
	fontLabel  = 10.0
	fontSide   = 9.0
	lineHeight = 11.0 // of a label
	radius     = 11.0 // of a processor's circle
	minWidth   = 520.0
	minColumn  = 60.0
	maxColumn  = 110.0
)

// With more than manyProcessors columns are narrow and only the emphasised
// arrows have labels, in at most maxRows rows.
const (
	manyProcessors = 24
	narrowColumn   = 28.0
	wideLabel      = 8.8 // in units of textWidth
	narrowLabel    = 7.0
	maxRows        = 6
)

// layout is a drawing in numbers.
type layout struct {
	width, height float64
	summary       string // for screen readers
	title         text
	bands         []band
	lives         []life
	trails        []trail
	arrows        []arrow
	labels        []text
	sides         []text
	legend        []sample
	notes         []text
}

// A band is a round: a row of the drawing.
type band struct {
	x, y, width, height float64
	shaded              bool
	texts               []text
}

// A life is a processor: a column of the drawing.
type life struct {
	x, top, bottom float64 // the centres of the circles
	texts          []text
}

// A trail emphasises a piece of a tree.
type trail struct {
	kind kind
	line segment
	wide bool
}

// The two trees.
type kind string

const (
	spread kind = "spread" // where x0 goes
	gather kind = "gather" // where y0 comes from
)

// An arrow is a message, in two pieces when it goes around the side.
type arrow struct {
	message *message
	pieces  []segment
}

// A sample is an entry of the legend: a line and what it means.
type sample struct {
	line segment
	kind kind // of a trail; a port when empty
	port int
	text text
}

// frame is where the columns and rows lie.
type frame struct {
	s           *schedule
	left, right float64 // the sides, half a column from the outer processors
	column      float64
	gutter      float64   // beyond each side, for what sticks out
	top, bottom float64   // the centres of the circles
	rounds      []float64 // the upper edges of the bands, and the lower one of the last
	tags        [][]tag   // by round
}

// arrange gives everything in a drawing of s its place.
func arrange(s *schedule) *layout {
	f := newFrame(s)
	l := &layout{
		summary: "Schedule of " + header(s),
		title:   text{at: point{margin, margin + fontTitle}, size: fontTitle, bold: true, text: header(s)},
	}
	f.addBands(l)
	f.addLives(l)
	for t := range s.rounds {
		f.addArrows(l, t)
		f.addLabels(l, t)
	}
	for _, focus := range []bool{true, false} {
		f.addSides(l, focus)
	}
	f.addTrails(l)
	f.addLegend(l)
	return l
}

func header(s *schedule) string {
	name := s.info.Algorithm
	if s.info.Parameters != "" {
		name += " (" + s.info.Parameters + ")"
	}
	rounds := "rounds"
	if s.info.Rounds() == 1 {
		rounds = "round"
	}
	return fmt.Sprintf("%s: K = %d, p = %d, field %s, %d %s", name, s.info.Processors, s.info.Ports, s.info.Field.Name(), s.info.Rounds(), rounds)
}

// newFrame chooses the columns from the widths of the labels and then the bands
// from the rows that the labels take.
func newFrame(s *schedule) *frame {
	f := &frame{s: s}
	k := s.info.Processors
	widest := f.widestLabel() + 10
	titles := 0.0
	for t := range s.rounds {
		for _, line := range roundTitle(s, t) {
			titles = max(titles, 8+textWidth(line, fontText))
		}
	}
	sides := textWidth(fmt.Sprint("from ", k-1), fontSide) + 12

	f.column = narrowColumn
	if k <= manyProcessors {
		fill := (minWidth - 2*margin - titles - 2*sides) / float64(k)
		f.column = max(minColumn, widest, min(maxColumn, fill))
	}
	f.gutter = max(sides, widest-f.column/2)
	f.left = margin + titles + f.gutter
	f.right = f.left + float64(k)*f.column

	f.top = margin + 2*fontTitle + fontText + 2*radius
	y := f.top + radius + 10
	for t := range s.rounds {
		f.rounds = append(f.rounds, y)
		f.tags = append(f.tags, f.tagRound(t))
		y += f.bandHeight(t)
	}
	f.rounds = append(f.rounds, y)
	f.bottom = y + radius + 10
	return f
}

func (f *frame) widestLabel() float64 {
	w := 0.0
	for _, list := range f.s.rounds {
		for i := range list {
			for _, line := range f.label(&list[i]) {
				w = max(w, bolder*textWidth(line, fontLabel))
			}
		}
	}
	return w
}

// bandHeight makes room for the labels, and for long arrows.
func (f *frame) bandHeight(round int) float64 {
	list := f.s.rounds[round]
	if len(list) == 0 {
		return 56
	}
	span := 0
	for i := range list {
		span = max(span, list[i].span, -list[i].span)
	}
	return f.departs(round) - f.rounds[round] + 64 + 6*float64(min(span, 16))
}

func (f *frame) x(proc int) float64 { return f.left + (float64(proc)+0.5)*f.column }

// departs and arrives are the heights at which a round's arrows begin, below
// the labels, and end.
func (f *frame) departs(round int) float64 {
	return f.rounds[round] + 8 + lineHeight*float64(rows(f.tags[round]))
}
func (f *frame) arrives(round int) float64 { return f.rounds[round+1] - 4 }

// roundTitle returns what stands at the left of a band.
func roundTitle(s *schedule, round int) []string {
	lines := []string{fmt.Sprintf("round %d", round), s.phases[round]}
	if p := pattern(s.rounds[round], s.info.Processors); p != "" {
		lines = append(lines, p)
	}
	return lines
}

func (f *frame) addBands(l *layout) {
	for t := range f.s.rounds {
		y := f.rounds[t]
		b := band{x: margin, y: y, width: f.right + f.gutter - margin, height: f.rounds[t+1] - y, shaded: t%2 == 0}
		for i, line := range roundTitle(f.s, t) {
			b.texts = append(b.texts, text{
				at: point{margin + 8, y + 18 + 15*float64(i)}, size: fontText, bold: i == 0, text: line,
			})
		}
		l.bands = append(l.bands, b)
	}
}

func (f *frame) addLives(l *layout) {
	for k := range f.s.info.Processors {
		add := life{x: f.x(k), top: f.top, bottom: f.bottom}
		for _, t := range []text{
			{at: point{y: f.top - radius - 6}, text: fit(f.s.inputs[k], f.column/fontText)},
			{at: point{y: f.top + 4}, bold: true, text: fmt.Sprint(k)},
			{at: point{y: f.bottom + 4}, bold: true, text: fmt.Sprint(k)},
			{at: point{y: f.bottom + radius + fontText + 3}, text: fit(f.s.outputs[k], f.column/fontText)},
		} {
			t.at.x, t.anchor, t.size = add.x, "middle", fontText
			add.texts = append(add.texts, t)
		}
		l.lives = append(l.lives, add)
	}
}
