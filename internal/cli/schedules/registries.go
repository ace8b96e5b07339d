package schedules

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"volley/algo"
	"volley/field"
	"volley/internal/cli/session"
	"volley/internal/report"
)

func newAlgorithms() *cobra.Command {
	columns := []report.Column[algo.Algorithm]{
		{Name: "name", Value: func(a algo.Algorithm) any { return a.Name }},
		{Name: "parts", Value: func(a algo.Algorithm) any {
			var list []string
			for _, p := range a.Parts {
				list = append(list, p.Name)
			}
			return strings.Join(list, ", ")
		}},
		{Name: "C1", Value: func(a algo.Algorithm) any { return a.C1 }},
		{Name: "C2", Value: func(a algo.Algorithm) any { return a.C2 }},
		{Name: "title", Value: func(a algo.Algorithm) any { return a.Title }},
		{Name: "problem", Head: "for", Value: func(a algo.Algorithm) any { return a.Problem }},
		{Name: "source", Value: func(a algo.Algorithm) any { return a.Source }},
		{Name: "example", Value: func(a algo.Algorithm) any {
			if a.Traffic {
				return "volley protect --tolerate 2"
			}
			return "volley plan --algorithm " + a.Name + " " + a.Example
		}},
	}
	const note = `
C1 counts rounds, C2 packets, for K processors with p ports; clog(n) is the least
t with (p+1)^t >= n, and Psi(n) is C2 of universal. --algorithm auto takes the plan
of least C1·β + C2·W·τ + C3·W·γ.
`
	return registry("algorithms", "List the algorithms and what they cost", report.Paragraphs, columns, algo.Algorithms, note)
}

func newFields() *cobra.Command {
	columns := []report.Column[field.Kind]{
		{Name: "name", Value: func(k field.Kind) any { return k.Pattern }},
		{Name: "example", Value: func(k field.Kind) any { return k.Example }},
		{Name: "field", Value: func(k field.Kind) any { return k.Doc }},
	}
	return registry("fields", "List the finite fields", report.Text, columns, field.Kinds, "")
}

// registry makes a verb that prints a table of what there is; text writes its text form, and the note comes after that.
func registry[R any](name, short string, text func(io.Writer, []report.Column[R], []R) error,
	columns []report.Column[R], rows func() []R, note string) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := session.Stdout(cmd)
			if format != "text" {
				return report.Write(w, format, columns, rows())
			}
			if err := text(w, columns, rows()); err != nil {
				return err
			}
			_, err := fmt.Fprint(w, note)
			return err
		},
	}
	session.AddFormat(cmd.Flags(), &format, report.Formats...)
	return cmd
}
