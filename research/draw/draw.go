// Package draw makes pictures of schedules, for people.
//
// It works in three steps: collect reads from a plan who sends what to whom,
// arrange gives everything its place in numbers, render writes those as SVG.
package draw

import (
	"io"

	"volley/plan"
	"volley/research/plot"
)

// SVG writes a drawing of the schedule of p, which has to be valid: processors
// are columns, rounds are rows, and messages are arrows labelled with what they
// carry, in the words of [plan.Content.String]. Two trees are emphasised: where
// x0 goes and where y0 comes from. The tooltip of an arrow has its full content.
//
// Drawings are for plans that people look at: time and memory are those of
// [plan.Follow]. SVG returns the errors of Follow and of w.
func SVG(w io.Writer, p plan.Plan) error {
	s, err := collect(p)
	if err != nil {
		return err
	}
	return render(w, arrange(s))
}

// PDF writes the drawing of [SVG] as a page of its size, without tooltips.
func PDF(w io.Writer, p plan.Plan) error { return paintTo(w, p, plot.WritePDF) }

// TeX writes the drawing of [SVG] as a pgfpicture for LaTeX, without tooltips.
func TeX(w io.Writer, p plan.Plan) error { return paintTo(w, p, plot.WriteTeX) }
