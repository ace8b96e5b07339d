package draw

import (
	"fmt"
	"math/big"

	"volley/matrix"
)

const (
	mostEntries = 256    // in a row or column of a picture
	widest      = 1280.0 // of a picture with entries as numbers
	shades      = 8      // of entries without numbers
)

// Matrix draws a matrix, which the title names: the entries where they fit, else a cell for each that is the darker the
// larger its symbol code is, white for 0. The error says that there are too many entries.
func Matrix(a matrix.Matrix, title string) (*Picture, error) {
	rows, cols := a.Rows(), a.Cols()
	if rows > mostEntries || cols > mostEntries {
		return nil, fmt.Errorf("%d × %d entries are too many to draw: want at most %d × %d", rows, cols, mostEntries, mostEntries)
	}
	last := new(big.Float).SetInt(new(big.Int).Sub(a.Field().Order(), big.NewInt(1)))
	texts := make([][]string, rows)
	wide := width(fmt.Sprint("y", cols-1), fontText)
	for i := range texts {
		for j := range cols {
			texts[i] = append(texts[i], a.At(i, j).String())
			wide = max(wide, width(texts[i][j], fontText))
		}
	}
	p := &Picture{title: title}
	labels := width(fmt.Sprint("x", rows-1), fontText)
	left, top := margin+labels+8, margin+2*fontTitle+2*fontText
	cell, high, numbers := wide+12, 24.0, true
	if float64(cols)*cell > widest || float64(rows)*high > widest {
		cell, numbers = max(3, min(32, 768/float64(max(rows, cols)))), false
		high = cell
	}
	right, bottom := left+float64(cols)*cell, top+float64(rows)*high
	for i := range rows {
		y := top + float64(i)*high
		cells := make([][][]point, 1+shades) // by shade; a path of all rows would be too long for LaTeX
		for j := range cols {
			shade := 0
			if e := a.At(i, j); !e.IsZero() {
				share, _ := new(big.Float).Quo(new(big.Float).SetInt(e.Int()), last).Float64()
				shade = 1 + min(int(share*shades), shades-1)
			}
			x := left + float64(j)*cell
			if numbers {
				p.text(x+cell-6, y+high/2+4, end, fontText, []uint32{0xA0A0A0, ink}[min(shade, 1)], texts[i][j])
			}
			cells[shade] = append(cells[shade], []point{{x, y + high/2}, {x + cell, y + high/2}})
		}
		for shade, paths := range cells[1:] {
			if dark := uint32(shade) * 0x18; len(paths) > 0 && !numbers {
				p.shapes = append(p.shapes, shape{paths: paths, width: high, colour: 0xCFDFF0 - dark<<16 - dark<<8 - dark*2/3})
			}
		}
	}
	p.line(ink, 1, append(box{left, top, right, bottom}.corners(), point{left, top})...)
	stride := 1
	for float64(stride)*cell < wide+12 || float64(stride)*high < 24 {
		stride *= 2
	}
	for j := 0; j < cols; j += stride {
		p.text(left+(float64(j)+0.5)*cell, top-8, middle, fontText, ink, fmt.Sprint("y", j))
	}
	for i := 0; i < rows; i += stride {
		p.text(left-8, top+(float64(i)+0.5)*high+4, end, fontText, ink, fmt.Sprint("x", i))
	}
	p.text(margin, margin+fontTitle, start, fontTitle, ink, title)
	p.width = max(right, covers(margin, 0, start, fontTitle, title).right) + margin
	if p.height = bottom + margin; !numbers {
		p.height = p.lines(margin, p.height+fontText, p.width-2*margin, "A cell is the darker the larger its entry is. White is 0.") + margin - fontText
	}
	return p, nil
}
