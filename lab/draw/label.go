package draw

import (
	"fmt"
	"slices"
	"strings"

	"volley/plan"
)

// label returns the lines of an arrow's label: what the message carries, in so many lines of a width. Initial and
// coded packets are merged to runs, long sums are broken or cut, and what does not fit is counted, as in "x0 x4 +6".
func label(content []plan.Content, lines int, wide float64) []string {
	var rows, columns []int
	var sums, texts []string
	var names plan.Info
	for _, c := range content {
		names.Pieces = c.Pieces
		switch {
		case c.Raw:
			rows = append(rows, c.Rows[0])
		case c.Complete && len(c.Rows) > 0:
			columns = append(columns, c.Columns[0])
		default:
			sums = append(sums, c.String())
		}
	}
	var packets []int
	for i, list := range [][]int{rows, columns} {
		slices.Sort(list)
		for _, r := range plan.Runs(list) {
			texts = append(texts, r.Named([]func(int) string{names.InitialName, names.CodedName}[i]))
			packets = append(packets, r.Count)
		}
	}
	texts = append(texts, sums...)
	packets = append(packets, slices.Repeat([]int{1}, len(sums))...)
	for shown := min(len(texts), 16); ; shown-- { // more words never fit
		var words []string
		remaining := len(content)
		for i, text := range texts[:shown] {
			remaining -= packets[i]
			if text = fit(text, wide*float64(lines)*0.9, fontLabel) + " "; width(text, fontLabel) > wide {
				words = append(words, strings.SplitAfter(text, ",")...)
			} else {
				words = append(words, text)
			}
		}
		if remaining > 0 {
			words = append(words, fmt.Sprintf("+%d", remaining))
		}
		if list := wrap(words, wide, fontLabel); len(list) <= lines || shown <= 1 {
			return list
		}
	}
}

// wrap joins pieces of text, which have their own spaces, to lines.
func wrap(pieces []string, wide, size float64) []string {
	lines := []string{""}
	for _, piece := range pieces {
		last := &lines[len(lines)-1]
		if joined := *last + piece; *last == "" || width(strings.TrimSpace(joined), size) <= wide {
			*last = joined
		} else {
			lines = append(lines, piece)
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

// fit cuts a word that is too wide, as in "y4(x0,x2…)".
func fit(text string, wide, size float64) string {
	end := "…"
	if strings.HasSuffix(text, ")") {
		end = "…)"
	}
	short := text
	for cut := len(text) - 1; cut > 3 && width(short, size) > wide; cut-- {
		short = strings.TrimRight(text[:cut], ",+.x") + end
	}
	return short
}
