package schedules

import (
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"volley/internal/cli/session"
	"volley/internal/comparison"
	"volley/internal/exit"
	"volley/internal/report"
	"volley/internal/selection"
)

type costOptions struct {
	selection.Selection
	format     string
	comparison comparison.Comparison
	processors string
	portList   string
	overList   string
}

func newCost(s *session.Invocation) *cobra.Command {
	o := &costOptions{}
	cmd := &cobra.Command{
		Use:   "cost [flags] [-k K]",
		Short: "Compare the costs of the algorithms, for many K",
		Args:  session.NoArguments,
		RunE:  session.Stoppable(o.run),
	}
	f := cmd.Flags()
	o.AddMatrix(f)
	o.Open = s.OpenInput
	f.Lookup("matrix").DefValue = "any matrix"
	f.StringVarP(&o.processors, "processors", "k", "2..64", "`K`, the numbers of processors: a list such as 4,8,16..20")
	f.StringVar(&o.Algorithm, "algorithm", "", "only these `NAMES` that volley algorithms lists, with commas")
	o.AddModel(f, selection.PaperModel)
	o.AddLimits(f)
	o.portList = "1"
	selection.MakeList(f, "ports", &o.portList)
	selection.MakeList(f, "rounds-over", &o.overList)
	o.AddSize(f)
	session.AddFormat(f, &o.format, report.Formats...)
	return cmd
}

func (o *costOptions) run(cmd *cobra.Command, _ []string) error {
	o.SetDefaults()
	if err := o.prepare(cmd); err != nil {
		return err
	}
	rows, err := o.comparison.Rows(cmd.Context())
	if err != nil {
		return err
	}
	return report.Write(session.Stdout(cmd), o.format, o.columns(), rows)
}

// prepare checks all arguments.
func (o *costOptions) prepare(cmd *cobra.Command) error {
	c := &o.comparison
	c.Selection, c.HasMatrix = &o.Selection, cmd.Flags().Changed("matrix")
	var err error
	if c.Processors, err = selection.ParseProcessors(o.processors); err != nil {
		return exit.Usagef("-k %q: %w", o.processors, err)
	}
	if spec, err := o.Spec(); err == nil && len(c.Processors) > 1 && slices.Contains(spec.Files(), session.Standard) {
		return exit.Usagef("-: standard input can be read once, and -k has %d numbers: name a file, or one number", len(c.Processors))
	}
	if c.Settings, err = comparison.Settings(o.portList, o.overList); err != nil {
		return err
	}
	if len(c.Settings)*len(c.Processors) > selection.MostNumbers {
		return exit.Usagef("%d values of -k, for %d of -p and --rounds-over: want %d rows at most", len(c.Processors), len(c.Settings), selection.MostNumbers)
	}
	bytes, err := o.Bytes()
	if err != nil {
		return err
	}
	return c.Prepare(o.Algorithm, bytes)
}

// columns returns those of the table of costs.
func (o *costOptions) columns() []report.Column[comparison.CostRow] {
	type column = report.Column[comparison.CostRow]
	columns := []column{
		{Name: "K", Value: func(r comparison.CostRow) any { return r.K }},
		{Name: "p", Value: func(r comparison.CostRow) any {
			if r.Used == 0 {
				return nil // the planner chooses
			}
			return r.Used
		}},
	}
	if o.overList != "" {
		columns = append(columns, column{Name: "rounds_over", Head: "over", Value: func(r comparison.CostRow) any { return r.Excess }})
	}
	columns = append(columns,
		column{Name: "bound_C1", Head: "bound", Unit: "C1", Value: func(r comparison.CostRow) any { return r.C1 }},
		column{Name: "bound_C2", Join: "/", Unit: "C2", Text: report.Number, Value: func(r comparison.CostRow) any { return r.C2 }},
		column{Name: "bound_fewest", Head: "fewest", Unit: "C2", Value: func(r comparison.CostRow) any {
			if b, ok := r.Fewest(); ok {
				return b
			}
			return nil
		}},
		column{Name: "bound_cut", Head: "cut", Unit: "C2", Text: report.Number, Value: func(r comparison.CostRow) any { return r.Cut }},
	)
	cells := []struct {
		name, join, unit string
		text             func(any) string
		value            func(comparison.PlanCost) any
	}{
		{"C1", "", "C1", nil, func(c comparison.PlanCost) any { return c.Cost.C1 }},
		{"C2", "/", "C2", nil, func(c comparison.PlanCost) any { return inPackets(c, float64(c.Cost.C2)) }},
		{"seconds", " ", "time", report.Seconds, func(c comparison.PlanCost) any { return o.comparison.Model.Time(c.Cost).Seconds() }},
	}
	for _, a := range o.comparison.Algorithms {
		for i, x := range cells {
			c := column{Name: a.Name + "_" + x.name, Join: x.join, Unit: x.unit, Text: x.text, Value: func(r comparison.CostRow) any {
				if c, ok := r.Costs[a.Name]; ok {
					return x.value(c)
				}
				return nil // the algorithm is not possible
			}}
			if i == 0 {
				c.Head = a.Name
			}
			columns = append(columns, c)
		}
	}
	if o.comparison.HasMatrix {
		columns = append(columns, column{Name: "front", Unit: "C1/C2", Value: func(r comparison.CostRow) any {
			var list []string // of plans that no other one beats
			for _, p := range r.Front {
				list = append(list, p.String())
			}
			return strings.Join(list, " ")
		}})
	}
	return columns
}

// inPackets returns a number of elements of a plan in packets: a whole number where
// packets are not cut.
func inPackets(c comparison.PlanCost, elements float64) any {
	if p := elements / float64(max(1, c.Cost.Pieces)); p != math.Trunc(p) || p > 1<<53 {
		return p
	} else {
		return int64(p)
	}
}
