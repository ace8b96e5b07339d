package chart

import (
	"fmt"
	"math/big"

	"volley/internal/draw"
	"volley/matrix"
)

const (
	mostEntries = 256    // in a row or column of a picture
	widest      = 1280.0 // of a picture with entries as numbers
	shades      = 8      // of entries without numbers
)

// Matrix draws a matrix, which the title names: the entries where they fit, else a cell for each that is the darker the
// larger its symbol code is, white for 0. The error says that there are too many entries.
func Matrix(a matrix.Matrix, title string) (*draw.Picture, error) {
	rows, cols := a.Rows(), a.Cols()
	if rows > mostEntries || cols > mostEntries {
		return nil, fmt.Errorf("%d × %d entries are too many to draw: want at most %d × %d", rows, cols, mostEntries, mostEntries)
	}
	last := new(big.Float).SetInt(new(big.Int).Sub(a.Field().Order(), big.NewInt(1)))
	texts := make([][]string, rows)
	wide := draw.Width(fmt.Sprint("y", cols-1), draw.FontText)
	for i := range texts {
		for j := range cols {
			texts[i] = append(texts[i], a.At(i, j).String())
			wide = max(wide, draw.Width(texts[i][j], draw.FontText))
		}
	}
	p := &draw.Picture{Title: title}
	labels := draw.Width(fmt.Sprint("x", rows-1), draw.FontText)
	left, top := draw.Margin+labels+8, draw.Margin+2*draw.FontTitle+2*draw.FontText
	cell, high, numbers := wide+12, 24.0, true
	if float64(cols)*cell > widest || float64(rows)*high > widest {
		cell, numbers = max(3, min(32, 768/float64(max(rows, cols)))), false
		high = cell
	}
	right, bottom := left+float64(cols)*cell, top+float64(rows)*high
	for i := range rows {
		y := top + float64(i)*high
		cells := make([][][]draw.Point, 1+shades) // by shade; a path of all rows would be too long for LaTeX
		for j := range cols {
			shade := 0
			if e := a.At(i, j); !e.IsZero() {
				share, _ := new(big.Float).Quo(new(big.Float).SetInt(e.Int()), last).Float64()
				shade = 1 + min(int(share*shades), shades-1)
			}
			x := left + float64(j)*cell
			if numbers {
				p.Text(x+cell-6, y+high/2+4, end, draw.FontText, []uint32{0xA0A0A0, draw.Ink}[min(shade, 1)], texts[i][j])
			}
			cells[shade] = append(cells[shade], []draw.Point{xy(x, y+high/2), xy(x+cell, y+high/2)})
		}
		for shade, paths := range cells[1:] {
			if dark := uint32(shade) * 0x18; len(paths) > 0 && !numbers {
				p.Stroke(0xCFDFF0-dark<<16-dark<<8-dark*2/3, high, nil, paths...)
			}
		}
	}
	p.Line(draw.Ink, 1, xy(left, top), xy(right, top), xy(right, bottom), xy(left, bottom), xy(left, top))
	every := 1
	for float64(every)*cell < wide+12 || float64(every)*high < 24 {
		every *= 2
	}
	for j := 0; j < cols; j += every {
		p.Text(left+(float64(j)+0.5)*cell, top-8, middle, draw.FontText, draw.Ink, fmt.Sprint("y", j))
	}
	for i := 0; i < rows; i += every {
		p.Text(left-8, top+(float64(i)+0.5)*high+4, end, draw.FontText, draw.Ink, fmt.Sprint("x", i))
	}
	p.Text(draw.Margin, draw.Margin+draw.FontTitle, start, draw.FontTitle, draw.Ink, title)
	p.Width = max(right, draw.Margin+draw.Width(title, draw.FontTitle)) + draw.Margin
	if p.Height = bottom + draw.Margin; !numbers {
		p.Height = p.Lines(draw.Margin, p.Height+draw.FontText, p.Width-2*draw.Margin, "A cell is the darker the larger its entry is. White is 0.") + draw.Margin - draw.FontText
	}
	return p, nil
}
