package matrix

import (
	"fmt"
	"io"
	"strings"

	"volley/field"
)

// ReadPoints reads points: decimal symbol codes with white space or commas
// between them, on any number of lines. Lines that begin with '#' are comments.
//
// The error names the file, by the given name, and the line (from 1) and the
// text at fault; for a point given twice, both its places. A file of more than
// 256 MiB is an error.
func ReadPoints(f field.Field, r io.Reader, name string) (Points, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPointsFile+1))
	if err != nil {
		return nil, fmt.Errorf("matrix: %s: %w", name, err)
	}
	if len(text) > maxPointsFile {
		return nil, fmt.Errorf("matrix: %s has more than %d MiB", name, maxPointsFile>>20)
	}
	const separators = " \t\r\n,"
	var points []field.Element
	seen := make(map[field.Element]int) // line of each point
	line := 0
	for words := range strings.Lines(string(text)) {
		line++
		if strings.HasPrefix(strings.TrimLeft(words, separators), "#") {
			continue
		}
		for _, word := range strings.FieldsFunc(words, func(c rune) bool { return strings.ContainsRune(separators, c) }) {
			e, err := field.ParseElement(f, word)
			if err != nil {
				return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
			}
			if first, ok := seen[e]; ok {
				return nil, fmt.Errorf("matrix: %s line %d: the point %v is on line %d already: want distinct points", name, line, e, first)
			}
			seen[e] = line
			points = append(points, e)
		}
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("matrix: %s has no points: want decimal values", name)
	}
	return listed(f, points), nil
}

const maxPointsFile = 256 << 20
