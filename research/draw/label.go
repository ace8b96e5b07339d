package draw

import (
	"fmt"
	"slices"
	"strings"

	"volley/plan"
)

// shorten returns the lines of an arrow's label: what the message carries, in
// so many lines of so many units of [textWidth]. Initial packets are merged to
// runs, long sums are broken or cut, and what does not fit is counted, as in
// "x0 x4 +6".
func shorten(content []plan.Content, lines int, width float64) []string {
	items := items(content)
	for shown := len(items); ; shown-- {
		left := len(content)
		var broken, cut []string
		for _, it := range items[:shown] {
			left -= it.packets
			broken = append(broken, breakUp(it.text, width)...)
			cut = append(cut, fit(it.text, width)+" ")
		}
		if left > 0 {
			more := fmt.Sprintf("+%d", left)
			broken, cut = append(broken, more), append(cut, more)
		}
		if label := wrap(broken, width); len(label) <= lines {
			return label
		}
		if label := wrap(cut, width); len(label) <= lines || shown == 1 {
			return label
		}
	}
}

// wrap joins pieces of text, which have their own spaces, to lines.
func wrap(pieces []string, width float64) []string {
	lines := []string{""}
	for _, piece := range pieces {
		last := &lines[len(lines)-1]
		if joined := *last + piece; *last == "" || textWidth(strings.TrimSpace(joined), 1) <= width {
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

// breakUp breaks a word that is too wide after its commas.
func breakUp(text string, width float64) []string {
	if textWidth(text, 1) <= width {
		return []string{text + " "}
	}
	return strings.SplitAfter(text+" ", ",")
}

// An item is a word of a label: one packet, or a run of packets.
type item struct {
	text    string
	packets int
}

// items lists the initial packets first, then the coded ones, in runs, and then
// the sums.
func items(content []plan.Content) []item {
	var list []item
	var rows, columns []int
	for _, c := range content {
		switch {
		case c.Raw:
			rows = append(rows, c.Rows[0])
		case c.Whole && len(c.Rows) > 0:
			columns = append(columns, c.Columns[0])
		default:
			list = append(list, item{c.String(), 1})
		}
	}
	var names plan.Info
	if len(content) > 0 {
		names.Pieces = content[0].Pieces
	}
	return slices.Concat(runs(names.InitialName, rows), runs(names.CodedName, columns), list)
}

// runs names packets, such as "x0", "x4..x6".
func runs(name func(int) string, list []int) []item {
	var items []item
	for _, r := range plan.Runs(slices.Sorted(slices.Values(list))) {
		text := name(r.First)
		if r.Count > 1 {
			text += ".." + name(r.First+r.Count-1)
		}
		items = append(items, item{text, r.Count})
	}
	return items
}

func words(list []item) string {
	var s []string
	for _, it := range list {
		s = append(s, it.text)
	}
	return strings.Join(s, " ")
}

// fit cuts a word that is too wide, as in "y4(x0,x2…)".
func fit(text string, width float64) string {
	if textWidth(text, 1) <= width {
		return text
	}
	end := "…"
	if strings.HasSuffix(text, ")") {
		end = "…)"
	}
	for cut := len(text) - 1; cut > 3; cut-- {
		if s := strings.TrimRight(text[:cut], ",+.x") + end; textWidth(s, 1) <= width {
			return s
		}
	}
	return text
}
