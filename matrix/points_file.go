package matrix

import (
	"bufio"
	"fmt"
	"io"

	"volley/field"
)

// ReadPoints reads points: decimal symbol codes with white space or commas
// between them, on any number of lines. Lines that begin with '#' are comments.
//
// The error names the file, by the given name, and the line (from 1) and the
// text at fault; for a point given twice, both its places. More than 2^24
// points are an error.
func ReadPoints(f field.Field, r io.Reader, name string) (Points, error) {
	var points []field.Element
	seen := make(map[field.Element]int) // line of each point
	in := bufio.NewReader(r)
	line, comment, begun := 1, false, false // begun: the line has had other than spaces
	var text []byte
	for eof := false; !eof; {
		c, err := in.ReadByte()
		if err == io.EOF {
			c, eof = '\n', true
		} else if err != nil {
			return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
		}
		switch c {
		case '\n', '\r', '\t', ' ', ',':
			if len(text) > 0 && !comment {
				e, err := field.ParseElement(f, string(text))
				if err != nil {
					return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
				}
				if first, ok := seen[e]; ok {
					return nil, fmt.Errorf("matrix: %s line %d: the point %v is on line %d already: want distinct points", name, line, e, first)
				}
				if len(points) == maxFilePoints {
					return nil, fmt.Errorf("matrix: %s line %d: more than %d points", name, line, maxFilePoints)
				}
				seen[e] = line
				points = append(points, e)
			}
			text = text[:0]
			if c == '\n' {
				line, comment, begun = line+1, false, false
			}
		case '#':
			comment = comment || !begun
			fallthrough
		default:
			begun = true
			if len(text) <= mostDigits { // one more is enough to refuse it
				text = append(text, c)
			} else if !comment { // of what may never end
				_, err := field.ParseElement(f, string(text))
				return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
			}
		}
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("matrix: %s has no points: want decimal values", name)
	}
	return listed(f, points), nil
}

// mostDigits is more than any element has (78); ReadPoints refuses longer ones before their end.
const mostDigits = 100

// maxFilePoints bounds the memory ReadPoints takes, to a few GiB.
const maxFilePoints = 1 << 24
