package draw

import (
	"math"
	"strings"
)

type point struct{ x, y float64 }

// A segment is a straight line.
type segment struct{ from, to point }

// shift moves the segment sideways.
func (s segment) shift(by float64) segment {
	dx, dy := s.to.x-s.from.x, s.to.y-s.from.y
	n := math.Hypot(dx, dy)
	x, y := -by*dy/n, by*dx/n
	return segment{point{s.from.x + x, s.from.y + y}, point{s.to.x + x, s.to.y + y}}
}

// shorter cuts so much off the end of the segment.
func (s segment) shorter(by float64) segment {
	keep := 1 - by/math.Hypot(s.to.x-s.from.x, s.to.y-s.from.y)
	return segment{s.from, point{s.from.x + keep*(s.to.x-s.from.x), s.from.y + keep*(s.to.y-s.from.y)}}
}

// bolder is how much wider bold text is.
const bolder = 1.08

// A text is one line.
type text struct {
	at     point  // of the baseline
	anchor string // start, middle or end
	size   float64
	colour string
	bold   bool
	halo   bool
	text   string
}

// A box is what a text covers.
type box struct{ left, top, right, bottom float64 }

func (t text) box() box {
	w := textWidth(t.text, t.size)
	if t.bold {
		w *= bolder
	}
	b := box{t.at.x, t.at.y - 0.8*t.size, t.at.x + w, t.at.y + 0.2*t.size}
	switch t.anchor {
	case "middle":
		b.left, b.right = b.left-w/2, b.right-w/2
	case "end":
		b.left, b.right = b.left-w, b.right-w
	}
	return b
}

func (b box) overlaps(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// textWidth estimates the width of a text, rather too wide than too narrow:
// which font a viewer has is unknown.
func textWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune(" .,:;ijl()|'", r):
			w += 0.36
		case strings.ContainsRune("+=→…mwMW", r):
			w += 0.9
		default:
			w += 0.63
		}
	}
	return w * size
}
