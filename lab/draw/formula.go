package draw

import (
	"regexp"
	"strings"
)

// A formula is a text with subscripts, superscripts and x̃ as letters of their own. Fonts space these badly, and some
// have none, so formulas are painted as digits of another size. LaTeX gets the formula.

const (
	script = 0.72 // the size of subscripts and superscripts
	tilde  = "\u0303"
	low    = "₀₁₂₃₄₅₆₇₈₉"
)

var (
	pieces      = regexp.MustCompile(`[₀-₉]+|[⁰¹²³⁴-⁹]+|\x{0303}|[^₀-₉⁰¹²³⁴-⁹\x{0303}]+`)
	plainDigits = strings.NewReplacer(`₀`, `0`, `₁`, `1`, `₂`, `2`, `₃`, `3`, `₄`, `4`, `₅`, `5`, `₆`, `6`, `₇`, `7`, `₈`, `8`, `₉`, `9`,
		`⁰`, `0`, `¹`, `1`, `²`, `2`, `³`, `3`, `⁴`, `4`, `⁵`, `5`, `⁶`, `6`, `⁷`, `7`, `⁸`, `8`, `⁹`, `9`)
	greek = strings.NewReplacer(`β`, `\beta `, `γ`, `\gamma `, `…`, `\cdots `, "x"+tilde, `\tilde{x}`)
)

// math writes a formula.
func (p *Picture) math(x, y, anchor float64, colour uint32, text string) {
	place := point{x - anchor*formulaWidth(text), y}
	p.shapes = append(p.shapes, shape{paths: [][]point{{place}}, colour: colour, size: fontMath, anchor: anchor, text: text, math: true})
}

// wide returns the width of a text.
func (s shape) wide() float64 {
	if s.math {
		return formulaWidth(s.text)
	}
	return width(s.text, s.size)
}

func formulaWidth(text string) (w float64) {
	for _, part := range (shape{text: text, size: fontMath, paths: [][]point{{{}}}}).split() {
		w = part.paths[0][0].x + width(part.text, part.size)
	}
	return w
}

// painted returns the shapes, formulas in parts.
func (p *Picture) painted() (list []shape) {
	for _, s := range p.shapes {
		if s.math {
			list = append(list, s.split()...)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// split returns the parts of a formula.
func (s shape) split() (parts []shape) {
	place := s.paths[0][0]
	for _, text := range pieces.FindAllString(s.text, -1) {
		part, dy := s, 0.0
		part.math, part.text = false, plainDigits.Replace(text)
		switch {
		case text == tilde: // above the letter before
			letter := width("x", s.size)
			part.text = "˜"
			part.paths = [][]point{{{place.x - (letter+width(part.text, s.size))/2, place.y}}}
			parts = append(parts, part)
			continue
		case strings.ContainsAny(text, low):
			part.size, dy = script*s.size, 0.2*s.size
		case part.text != text:
			part.size, dy = script*s.size, -0.35*s.size
		}
		bare := strings.TrimSpace(part.text) // SVG ignores spaces at the ends
		indent, _, _ := strings.Cut(part.text, bare)
		advance := width(part.text, part.size)
		part.text, part.paths = bare, [][]point{{{place.x + width(indent, part.size), place.y + dy}}}
		parts = append(parts, part)
		place.x += advance
	}
	return parts
}

// latex writes a formula for LaTeX.
func latex(text string) string {
	text = pieces.ReplaceAllStringFunc(text, func(part string) string {
		digits := plainDigits.Replace(part)
		switch {
		case digits == part:
			return part
		case strings.ContainsAny(part, low):
			return "_{" + digits + "}"
		}
		return "^{" + digits + "}"
	})
	return "$" + greek.Replace(text) + "$"
}
