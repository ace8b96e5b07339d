package matrix

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"volley/field"
)

// FromCSV reads a matrix: a line per row, the entries as decimal symbol codes with commas between them. Spaces around
// entries, blank lines and lines that begin with '#' count for nothing. The format is that of [encoding/csv].
//
// The error names the file, by the given name, and the line, the column of the matrix (both from 1) and the text at
// fault. A matrix over 4 GiB and a row over 4 MiB of text are errors.
func FromCSV(f field.Field, r io.Reader, name string) (*Dense, error) {
	d, _, err := readCSV(f, r, name, maxSize)
	return d, err
}

// maxRecord bounds the text of one row and its comments; one of the largest square matrix takes about 1 MiB.
const maxRecord = 4 << 20

// readCSV is FromCSV, except that it stores the first keep rows only. It returns how many rows there are.
func readCSV(f field.Field, r io.Reader, name string, keep int) (*Dense, int, error) {
	fail := func(line int, format string, args ...any) (*Dense, int, error) {
		return nil, 0, fmt.Errorf("matrix: %s line %d: %w", name, line, fmt.Errorf(format, args...))
	}
	limit := &limitedReader{r: r}
	in := csv.NewReader(limit)
	in.Comment = '#'
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	in.ReuseRecord = true

	d := &Dense{f: f, size: f.SymbolBytes()}
	rows, line, firstLine := 0, 0, 0
	for {
		limit.left = maxRecord
		record, err := in.Read()
		if err == io.EOF {
			break
		}
		if parseErr := (*csv.ParseError)(nil); errors.As(err, &parseErr) {
			return fail(parseErr.Line, "%w", parseErr.Err)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("matrix: %s after line %d: %w", name, line, err)
		}
		line, _ = in.FieldPos(0)
		if len(record) == 1 && strings.TrimSpace(record[0]) == "" {
			continue
		}
		if rows == 0 {
			d.cols, firstLine = len(record), line
		}
		if len(record) != d.cols {
			return fail(line, "a row of %s, and line %d has %d: want rows of equal length", count(len(record), "value"), firstLine, d.cols)
		}
		rows++
		for j, text := range record {
			e, err := field.ParseElement(f, text)
			if err != nil {
				return fail(line, "column %d: %w", j+1, err)
			}
			if rows <= keep {
				var symbol [32]byte
				field.PutSymbol(f, symbol[:], e)
				d.data = append(d.data, symbol[:d.size]...)
			}
		}
		d.rows = min(rows, keep)
		if err := CheckDense(f, d.rows, d.cols); err != nil {
			return fail(line, "%w", err)
		}
	}
	if rows == 0 {
		return nil, 0, fmt.Errorf("matrix: %s has no values: want a line of decimal values per row", name)
	}
	return d, rows, nil
}

func count(n int, what string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A limitedReader reads left bytes more, and then fails.
type limitedReader struct {
	r    io.Reader
	left int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a row of more than %d MiB", maxRecord>>20)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// WriteCSV writes m as [FromCSV] reads it: a line of decimal values with commas per row, of which it stores one.
func WriteCSV(w io.Writer, m Matrix) error {
	out := bufio.NewWriter(w)
	for i := range m.Rows() {
		for j := range m.Cols() {
			if j > 0 {
				out.WriteByte(',')
			}
			out.WriteString(m.At(i, j).String())
		}
		// The writer keeps its first error; here it ends a large matrix early.
		if err := out.WriteByte('\n'); err != nil {
			return fmt.Errorf("matrix: writing %s: %w", m.ID(), err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("matrix: writing %s: %w", m.ID(), err)
	}
	return nil
}
