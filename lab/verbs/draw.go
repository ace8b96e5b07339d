package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"volley/field"
	"volley/internal/disk"
	"volley/internal/selection"
	"volley/lab/draw"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
)

func newDraw() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "draw [-o FILE] JSON",
		Short: "Draw the JSON of a plan or a matrix",
		Long: `Draw a plan or a matrix from its JSON: a file, or - for standard input.

Plans of up to 81 processors and 64 rounds are drawn message by message, and
matrices of up to 256 × 256 entries as numbers or shades. LaTeX takes .tex by
\input with package tikz.`,
		Example: `  volley plan -k 8 --model paper --json | volley-lab draw - -o schedule.pdf
  volley matrix --matrix lch -k 60 --json | volley-lab draw - -o zeros.svg`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return selection.Markf("", "want one file with JSON, got %d: see volley-lab draw --help", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := formatOf(output)
			if err != nil {
				return err
			}
			return drawFile(cmd, args[0], format, output)
		},
	}
	addOutput(cmd, &output)
	return cmd
}

func newFigure() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "figure [-o FILE] N",
		Short: "Draw figure N, 1 to 4, of the paper",
		Long: `Draw a figure of the paper by Wang and Raviv: 1, a universal algorithm; 2 and 3,
prepare and shoot; 4, the two trees of a DFT. Labels are computed from plans.
Where the paper's figure is wrong this one is right, and the file says so.

A figure is 3.5 inches wide, as a column is. LaTeX takes .pdf by
\includegraphics, or .tex by \input with package tikz.`,
		Example: `  volley-lab figure 3 -o figure3.tex`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.ContainsFunc(draw.Figures, func(f draw.Figure) bool { return fmt.Sprint(f.Number) == args[0] }) {
				return selection.Markf("", "want the number of one figure, 1 to %d, got %q", len(draw.Figures), strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := formatOf(output)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(draw.Figures, func(f draw.Figure) bool { return fmt.Sprint(f.Number) == args[0] })
			picture, err := draw.Figures[i].Picture()
			if err != nil {
				return err
			}
			return write(cmd, picture, format, output)
		},
	}
	addOutput(cmd, &output)
	return cmd
}

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "`FILE` to write, .svg, .png, .pdf, or .tex for LaTeX (default: SVG to stdout)")
}

// formatOf returns the format of a file by its name.
func formatOf(output string) (string, error) {
	format := strings.TrimPrefix(filepath.Ext(output), ".")
	if output == "" {
		return "svg", nil
	}
	if !slices.Contains(draw.Formats, format) {
		return "", selection.Markf("output", "-o %s: want a name that ends with .svg, .png, .pdf or .tex", output)
	}
	return format, nil
}

// drawFile draws what the file has, or standard input.
func drawFile(cmd *cobra.Command, name, format, output string) error {
	input := cmd.InOrStdin()
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return selection.Markf("", "%w", err)
		}
		defer f.Close()
		input = f
	}
	picture, err := picture(input)
	if err != nil {
		return selection.Markf("", "%s: %s", name, selection.Message(err))
	}
	return write(cmd, picture, format, output)
}

// write writes a picture to a file or, without a name, to stdout.
func write(cmd *cobra.Command, p *draw.Picture, format, file string) error {
	var drawing bytes.Buffer
	if err := p.Write(&drawing, format); err != nil {
		return err
	}
	return put(cmd, drawing.Bytes(), file)
}

func put(cmd *cobra.Command, data []byte, file string) error {
	if file != "" {
		dir, err := disk.OS.Open(filepath.Dir(file))
		if err != nil {
			return err
		}
		defer dir.Close()
		return disk.WriteIn(dir, filepath.Base(file), data, 0o666)
	}
	_, err := cmd.OutOrStdout().Write(data)
	return err
}

// mostBytes is the bytes of JSON that are read.
const mostBytes = 1 << 30

// picture draws a plan or a matrix.
func picture(r io.Reader) (*draw.Picture, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostBytes))
	if err != nil {
		return nil, err
	}
	var m printed
	if err := json.Unmarshal(data, &m); err == nil && m.Entries != nil {
		a, err := m.matrix()
		if err != nil {
			return nil, err
		}
		return draw.Matrix(a, m.title())
	}
	p, err := plan.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return draw.Schedule(p)
}

// printed is a matrix as volley matrix --json prints it.
type printed struct {
	Field, Matrix, Order string
	Inverse              bool
	Entries              [][]string
}

// matrix reads the entries.
func (m *printed) matrix() (matrix.Matrix, error) {
	f, err := field.Parse(m.Field)
	if err != nil {
		return nil, err
	}
	var rows strings.Builder
	for _, row := range m.Entries {
		rows.WriteString(strings.Join(row, ",") + "\n")
	}
	return matrices.FromCSV(f, strings.NewReader(rows.String()), "entries")
}

// title names the matrix above its picture.
func (m *printed) title() string {
	title := m.Matrix
	if m.Inverse {
		title = "inverse of " + title
	}
	if m.Order != "natural" && m.Order != "" {
		title += ", order " + m.Order
	}
	return fmt.Sprintf("%s: %d × %d, field %s", title, len(m.Entries), len(m.Entries[0]), m.Field)
}
