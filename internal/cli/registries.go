package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"volley/algo"
	"volley/field"
	"volley/report"
)

func newAlgorithms() *cobra.Command {
	columns := []report.Column[algo.Algorithm]{
		{Name: "name", Value: func(a algo.Algorithm) any { return a.Name }},
		{Name: "C1", Unit: "rounds", Value: func(a algo.Algorithm) any { return a.C1 }},
		{Name: "C2", Unit: "packets", Value: func(a algo.Algorithm) any { return a.C2 }},
		{Name: "title", Value: func(a algo.Algorithm) any { return a.Title }},
		{Name: "problem", Value: func(a algo.Algorithm) any { return a.Problem }},
		{Name: "source", Value: func(a algo.Algorithm) any { return a.Source }},
	}
	const note = "\nclog(n) is the least t with (p+1)^t >= n. auto takes the one of least C1·β + C2·W·τ.\n"
	return registry("algorithms", "List the algorithms and what they cost", columns, algo.Algorithms, note)
}

func newFields() *cobra.Command {
	columns := []report.Column[field.Kind]{
		{Name: "name", Value: func(k field.Kind) any { return k.Pattern }},
		{Name: "example", Value: func(k field.Kind) any { return k.Example }},
		{Name: "field", Value: func(k field.Kind) any { return k.Doc }},
	}
	return registry("fields", "List the finite fields", columns, field.Kinds, "")
}

// registry makes a verb that prints a table of what there is.
func registry[R any](name, short string, columns []report.Column[R], rows func() []R, note string) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := cmd.OutOrStdout()
			if err := report.Write(w, format, columns, rows()); err != nil {
				return usage(err)
			}
			if format == "text" {
				fmt.Fprint(w, note)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", strings.Join(report.Formats, ", "))
	return cmd
}
