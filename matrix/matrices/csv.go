package matrices

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"volley/field"
	"volley/internal/pointset"
	"volley/internal/printable"
	"volley/matrix"
)

// FromCSV reads a matrix: a line per row, the entries as decimal symbol codes with commas between them. Spaces around
// entries, blank lines and lines that begin with '#' count for nothing. The format is that of [encoding/csv].
//
// The error names the file, by the given name, and the line, the column of the matrix (both from 1) and the text at
// fault. A matrix over 4 GiB and a row over 4 MiB of text are errors.
func FromCSV(f field.Field, r io.Reader, name string) (*matrix.Dense, error) {
	d, _, err := readCSV(f, r, name, pointset.MaxSize)
	return d, err
}

// maxRow bounds the text of one row and its comments; one of the largest square matrix takes about 1 MiB.
const maxRow = 4 << 20

// readCSV is FromCSV, except that it stores the first keep rows only. It returns how many rows there are.
func readCSV(f field.Field, r io.Reader, name string, keep int) (*matrix.Dense, int, error) {
	fail := func(line int, format string, args ...any) (*matrix.Dense, int, error) {
		return nil, 0, fmt.Errorf("matrix: %s line %d: %w", name, line, fmt.Errorf(format, args...))
	}
	limit := &limitedReader{r: r}
	reader := csv.NewReader(limit)
	reader.Comment = '#'
	reader.FieldsPerRecord = -1
	reader.TrimLeadingSpace = true
	reader.ReuseRecord = true

	var kept [][]byte // rows
	rows, cols, line, firstLine := 0, 0, 0, 0
	for {
		limit.remaining = maxRow
		cells, err := reader.Read()
		if err == io.EOF {
			break
		}
		if parseErr := (*csv.ParseError)(nil); errors.As(err, &parseErr) {
			return fail(parseErr.Line, "%w", parseErr.Err)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("matrix: %s after line %d: %w", name, line, err)
		}
		line, _ = reader.FieldPos(0)
		if len(cells) == 1 && strings.TrimSpace(cells[0]) == "" {
			continue
		}
		if rows == 0 {
			cols, firstLine = len(cells), line
		}
		if len(cells) != cols {
			return fail(line, "a row of %s, and line %d has %d: want rows of equal length", printable.Count(len(cells), "value"), firstLine, cols)
		}
		rows++
		var row []byte
		for j, text := range cells {
			e, err := field.ParseElement(f, text)
			if err != nil {
				return fail(line, "column %d: %w", j+1, err)
			}
			if rows <= keep {
				row = append(row, make([]byte, f.SymbolBytes())...)
				field.PutSymbol(f, row[j*f.SymbolBytes():], e)
			}
		}
		if rows <= keep {
			kept = append(kept, row)
		}
		if err := matrix.CheckDense(f, len(kept), cols); err != nil {
			return fail(line, "%w", err)
		}
	}
	if rows == 0 {
		return nil, 0, fmt.Errorf("matrix: %s has no values: want a line of decimal values per row", name)
	}
	d := matrix.NewDense(f, len(kept), cols)
	for i, row := range kept {
		copy(d.Row(i), row)
		kept[i] = nil
	}
	return d, rows, nil
}

// A limitedReader reads so many more bytes as remain, and then fails.
type limitedReader struct {
	r         io.Reader
	remaining int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.remaining <= 0 {
		return 0, fmt.Errorf("a row of more than %d MiB", maxRow>>20)
	}
	n, err := l.r.Read(p[:min(len(p), l.remaining)])
	l.remaining -= n
	return n, err
}

// WriteCSV writes m as [FromCSV] reads it: a line of decimal values with commas per row, of which it stores one.
func WriteCSV(w io.Writer, m matrix.Matrix) error {
	writer := bufio.NewWriter(w)
	for i := range m.Rows() {
		for j := range m.Cols() {
			if j > 0 {
				writer.WriteByte(',')
			}
			writer.WriteString(m.At(i, j).String())
		}
		// The writer keeps its first error; here it ends a large matrix early.
		if err := writer.WriteByte('\n'); err != nil {
			return fmt.Errorf("matrix: writing %s: %w", m.ID(), err)
		}
	}
	if err := writer.Flush(); err != nil {
		return fmt.Errorf("matrix: writing %s: %w", m.ID(), err)
	}
	return nil
}

// ReadPoints reads points: decimal symbol codes between white space or commas. Lines that begin with '#' are comments.
//
// The error names the file, by the given name, and the line (from 1) and the text at fault; for a point given twice,
// both its places. A line over 16 MiB and more than 2^24 points are an error.
func ReadPoints(f field.Field, r io.Reader, name string) (matrix.Points, error) {
	var points []field.Element
	seen := make(map[field.Element]int) // line of each point
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	line := 1
	for ; scanner.Scan(); line++ {
		texts := strings.FieldsFunc(scanner.Text(), func(c rune) bool { return strings.ContainsRune(" \t\r,", c) })
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
	if err := scanner.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line of more than %d MiB", maxLine>>20)
		}
		return nil, fmt.Errorf("matrix: %s line %d: %w", name, line, err)
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("matrix: %s has no points: want decimal values", name)
	}
	return pointset.Listed(f, points), nil
}

// maxLine bounds a line, in bytes.
const maxLine = 16 << 20

// maxFilePoints bounds the memory ReadPoints takes, to a few GiB.
const maxFilePoints = 1 << 24
