package matrix

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"volley/field"
)

// ReadPoints reads points: decimal symbol codes with white space or commas
// between them, on any number of lines. Lines that begin with '#' are comments.
//
// The error names the file, by the given name, and the line (from 1) and the text at fault; for a point given twice,
// both its places. A line over 16 MiB and more than 2^24 points are an error.
func ReadPoints(f field.Field, r io.Reader, name string) (Points, error) {
	var points []field.Element
	seen := make(map[field.Element]int) // line of each point
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	line := 1
	for ; in.Scan(); line++ {
		texts := strings.FieldsFunc(in.Text(), func(c rune) bool { return strings.ContainsRune(" \t\r,", c) })
		if len(texts) > 0 && texts[0][0] == '#' {
			continue
		}
		for _, text := range texts {
			e, err := field.ParseElement(f, text)
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
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line of more than %d MiB", maxLine>>20)
		}
		return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("matrix: %s has no points: want decimal values", name)
	}
	return listed(f, points), nil
}

// maxLine bounds a line, in bytes.
const maxLine = 16 << 20

// maxFilePoints bounds the memory ReadPoints takes, to a few GiB.
const maxFilePoints = 1 << 24
