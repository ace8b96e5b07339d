package draw

import (
	"fmt"
	"slices"
	"strings"
)

// addLegend explains what there is to be explained, below the drawing, and
// gives the layout its size.
func (f *frame) addLegend(l *layout) {
	l.width = max(minWidth, f.right+f.gutter+margin, l.title.box().right+margin)
	x, y := margin, f.bottom+radius+2*fontText+26
	for _, s := range f.samples(l) {
		w := 34 + textWidth(s.text.text, fontText) + 18
		if x > margin && x+w > l.width {
			x, y = margin, y+20
		}
		s.line = segment{point{x + 4, y - 4}, point{x + 28, y - 4}}
		s.text.at, s.text.size = point{x + 36, y}, fontText
		l.legend = append(l.legend, s)
		x += w
	}
	if len(l.legend) > 0 {
		y += 22
	}
	for _, line := range wrap(strings.SplitAfter(f.notation(l), " "), (l.width-2*margin)/fontText) {
		l.notes = append(l.notes, text{at: point{margin, y}, size: fontText, text: line})
		y += 16
	}
	l.height = y + margin - fontText
}

// samples returns the entries that the drawing needs, without places.
func (f *frame) samples(l *layout) []sample {
	var list []sample
	for _, t := range []struct {
		kind kind
		what string
	}{
		{spread, fmt.Sprintf("where %s goes", f.s.info.InitialName(focusRow))},
		{gather, fmt.Sprintf("where %s comes from", f.s.info.CodedName(focusColumn))},
	} {
		if slices.ContainsFunc(l.trails, func(o trail) bool { return o.kind == t.kind }) {
			list = append(list, sample{kind: t.kind, text: text{text: t.what}})
		}
	}
	if ports := f.s.info.Ports; ports > 1 {
		for port := range ports {
			list = append(list, sample{port: port, text: text{text: fmt.Sprint("port ", port)}})
		}
	}
	return list
}

// notation explains the words of the labels.
func (f *frame) notation(l *layout) string {
	s := "Columns are processors, rows are rounds. x: initial packets; y: coded packets"
	if f.s.example != "" {
		s += "; " + f.s.example
	}
	s += "."
	if slices.ContainsFunc(l.arrows, func(a arrow) bool { return len(a.pieces) > 1 }) {
		s += " Arrows that leave at one side come in at the other."
	}
	return s
}
