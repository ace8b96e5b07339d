package schedules

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"volley/field"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/matrix"
	"volley/matrix/matrices"
)

type matrixOptions struct {
	selection.Selection
	format string
}

func newMatrix(s *session.Invocation) *cobra.Command {
	o := &matrixOptions{}
	cmd := &cobra.Command{
		Use:   "matrix [flags] -k K",
		Short: "Print the matrix that encode uses",
		Args:  session.NoArguments,
		RunE:  session.Stoppable(o.run),
	}
	f := cmd.Flags()
	o.AddMatrix(f)
	o.Open = s.OpenInput
	o.AddProcessors(f)
	session.AddFormat(f, &o.format, "csv", "json")
	return cmd
}

func (o *matrixOptions) run(cmd *cobra.Command, _ []string) error {
	o.SetDefaults()
	inverse := o.Inverse // which is printed with the points of the matrix itself
	o.Inverse = false
	plain, err := o.Build()
	if err != nil {
		return err
	}
	o.Inverse = inverse
	a := plain
	if inverse {
		if a, err = matrix.Inverse(cmd.Context(), plain); err != nil {
			return exit.AsUsage(err)
		}
	}
	return o.print(session.Stdout(cmd), a, matrix.StructureOf(plain).Points)
}

// print prints the matrix in the format of the flags.
func (o *matrixOptions) print(stdout io.Writer, a matrix.Matrix, points []matrix.PointSet) error {
	w := bufio.NewWriter(stdout)
	if o.format == "json" {
		writeMatrixJSON(w, o, a, points)
	} else {
		if o.Inverse {
			printable.Fprintf(w, "# inverse of %s\n", o.Matrix)
		}
		for _, set := range points {
			printable.Fprintf(w, "# %s %s\n", set.Name, strings.Join(field.Decimals(set.Points.Len(), set.Points.At), " "))
		}
		if o.Order != "natural" {
			printable.Fprintf(w, "# order %s\n", o.Order)
		}
		if err := matrices.WriteCSV(w, a); err != nil {
			return err
		}
	}
	return w.Flush()
}

// writeMatrixJSON writes the matrix row by row.
func writeMatrixJSON(w io.Writer, o *matrixOptions, a matrix.Matrix, points []matrix.PointSet) {
	quoted := func(list []string) string {
		return `["` + strings.Join(list, `","`) + `"]` // digits only: nothing to escape
	}
	name, _ := json.Marshal(o.Matrix)
	printable.Fprintf(w, "{\"field\":%q,\"matrix\":%s,\"inverse\":%v,\"order\":%q,", a.Field().Name(), string(name), o.Inverse, o.Order)
	printable.Fprintf(w, "\"rows\":%d,\"columns\":%d,\n\"points\":{", a.Rows(), a.Cols())
	for i, set := range points {
		if i > 0 {
			printable.Fprintf(w, ",")
		}
		printable.Fprintf(w, "%q:%s", set.Name, quoted(field.Decimals(set.Points.Len(), set.Points.At)))
	}
	printable.Fprintf(w, "},\n\"entries\":[")
	for i := range a.Rows() {
		if i > 0 {
			printable.Fprintf(w, ",")
		}
		printable.Fprintf(w, "\n%s", quoted(field.Decimals(a.Cols(), func(j int) field.Element { return a.At(i, j) })))
	}
	printable.Fprintf(w, "\n]}\n")
}
