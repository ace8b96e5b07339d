package draw

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"volley/internal/printable"
)

// tikz writes the picture as a tikzpicture. Texts have the document's font, and keep the end that they had.
func (p *Picture) tikz(w io.Writer) error {
	var b bytes.Buffer
	for _, line := range append([]string{p.title}, p.notes...) {
		fmt.Fprintf(&b, "%% %s\n", printable.Text(line))
	}
	b.WriteString("% In a document with \\usepackage{tikz}: \\input{FILE}, or as wide as a column \\resizebox{\\columnwidth}{!}{\\input{FILE}}\n" +
		"\\begin{tikzpicture}[x=0.75bp, y=-0.75bp]\n")
	colours := map[uint32]bool{}
	for _, s := range p.shapes {
		if !colours[s.colour] {
			colours[s.colour] = true
			fmt.Fprintf(&b, "\\definecolor{v%06X}{HTML}{%06X}\n", s.colour, s.colour)
		}
	}
	fmt.Fprintf(&b, "\\path[use as bounding box] (0,0) rectangle (%.5g,%.5g);\n", p.width, p.height)
	for _, s := range p.shapes {
		switch {
		case s.text != "":
			place, side := s.paths[0][0], []string{"base west", "base", "base east"}[int(2*s.anchor)]
			text := texEscapes.Replace(s.text)
			if s.math {
				text = latex(s.text)
			}
			size := 0.75 * s.size
			fmt.Fprintf(&b, "\\node[anchor=%s, inner sep=0pt, text=v%06X, font=\\fontsize{%.4gbp}{%.4gbp}\\selectfont] at (%.5g,%.5g) {%s};\n",
				side, s.colour, size, 1.2*size, place.x+s.anchor*s.wide(), place.y, text)
			continue
		case s.width == 0:
			fmt.Fprintf(&b, "\\fill[v%06X]", s.colour)
		default:
			fmt.Fprintf(&b, "\\draw[v%06X, line width=%.4gbp", s.colour, 0.75*s.width)
			for i, d := range s.dashes {
				if i == 0 {
					b.WriteString(", dash pattern=")
				}
				fmt.Fprintf(&b, "%s %.4gbp ", []string{"on", "off"}[i%2], 0.75*d)
			}
			b.WriteString("]")
		}
		for _, path := range s.paths {
			for i, q := range path {
				fmt.Fprintf(&b, "%s(%.5g,%.5g)", []string{"\n  ", " -- "}[min(i, 1)], q.x, q.y)
			}
			if s.radius > 0 {
				fmt.Fprintf(&b, " circle[radius=%.4gbp]", 0.75*s.radius)
			}
		}
		b.WriteString(";\n")
	}
	b.WriteString("\\end{tikzpicture}%\n")
	_, err := w.Write(b.Bytes())
	return err
}

var texEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`,
	`{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `%`, `\%`, `#`, `\#`, `_`, `\_`, `<`, `\ensuremath{<}`, `>`, `\ensuremath{>}`,
	`β`, `\ensuremath{\beta}`, `γ`, `\ensuremath{\gamma}`, `τ`, `\ensuremath{\tau}`, `µ`, `\ensuremath{\mu}`,
	`≤`, `\ensuremath{\le}`, `·`, `\ensuremath{\cdot}`, `→`, `\ensuremath{\to}`, `…`, `\dots{}`, `–`, `--`)
