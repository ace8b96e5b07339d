// Package schedules has the verbs that show, check, compare and run schedules, and that measure what chooses them.
package schedules

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"volley"
	"volley/algo"
	"volley/internal/cli/session"
	"volley/internal/comparison"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
	"volley/plan"
	"volley/sim"
)

type planOptions struct {
	selection.Selection
	format    string
	processor int
	explain   bool
}

// Above this many processors the text says what the plan costs, not what every
// processor does.
const mostShown = 64

func newPlan(s *session.Invocation) *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan [flags] -k K",
		Short: "Show a schedule: per round who sends what to whom",
		Args:  session.NoArguments,
		RunE:  session.Stoppable(o.run),
	}
	f := cmd.Flags()
	o.AddMatrix(f)
	o.Open = s.OpenInput
	o.AddProcessors(f)
	o.AddPlan(f, selection.NetworkModel)
	session.AddFormat(f, &o.format, "text", "json")
	f.IntVar(&o.processor, "processor", -1, "show only the program of this `PROCESSOR`")
	o.AddSize(f)
	f.BoolVar(&o.explain, "why", false, "show the table that auto chooses from")
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command, _ []string) error {
	o.SetDefaults()
	single := cmd.Flags().Changed("processor")
	if o.explain && single || (o.explain || single) && o.format != "text" {
		return exit.Usagef("--why and --processor each print text of their own: leave the other, and other formats, out")
	}
	a, err := o.Build()
	if err != nil {
		return err
	}
	if single && (o.processor < 0 || o.processor >= o.Processors) {
		return exit.Usagef("--processor %d: want 0 to %d", o.processor, o.Processors-1)
	}
	symbols, err := o.Symbols(a.Field())
	if err != nil {
		return err
	}
	model, err := o.Model(a.Field(), symbols)
	if err != nil {
		return err
	}
	encoder, err := volley.NewEncoder(cmd.Context(), a, o.Options(model)...)
	if err != nil {
		return exit.AsUsage(err)
	}
	if o.explain {
		return writeFronts(session.Stdout(cmd), encoder.Problem(), model)
	}
	return o.print(cmd.Context(), session.Stdout(cmd), encoder, symbols, model)
}

// print prints the plan for packets of so many symbols, and as text what it costs.
func (o *planOptions) print(ctx context.Context, w io.Writer, encoder *volley.Encoder, symbols int64, model sim.Model) error {
	single := o.processor >= 0
	p, err := encoder.Plan(ctx, nil, symbols)
	if err != nil {
		return err
	}
	if len(p.Info().Notes) == 0 && o.format == "text" {
		text, found := encoder.Problem().Structure()
		if found {
			text += "; not used"
		}
		if err := printable.Fprintf(w, "structure: %s\n", text); err != nil {
			return err
		}
	}
	switch {
	case o.format == "json":
		return plan.Encode(w, p)
	case single:
		return plan.DescribeProgram(w, p, o.processor)
	case o.Processors <= mostShown:
		if err := plan.Describe(w, p); err != nil {
			return err
		}
	default:
		info := p.Info()
		printable.Fprintf(w, "%s (%s): K = %d processors, p = %d, field %s; --processor N shows one of them\n%s",
			info.Algorithm, info.Parameters, info.Processors, info.Ports, info.Field.Name(), printable.Lines(strings.Join(append(slices.Concat(info.Notes, info.Layers), ""), "\n")))
	}
	r, err := encoder.Estimate(ctx, nil, symbols)
	if err != nil {
		return err
	}
	problem := encoder.Problem()
	return writeCost(w, r, problem, p, model)
}

// writeCost prints the costs of the plan and the bounds.
func writeCost(w io.Writer, r *volley.Report, problem *algo.Problem, p plan.Plan, model sim.Model) error {
	formula := "C1·β + C2·W·τ + C3·W·γ"
	if !model.Paper() {
		formula = fmt.Sprintf("sum of L + o·m + G·b, and C3·W·γ (%v)", model.Network)
	}
	var largest []string
	for _, x := range r.Rounds {
		largest = append(largest, fmt.Sprint(x.Largest))
	}
	sum := ""
	if len(largest) > 1 && len(largest) <= mostShown {
		sum = " = " + strings.Join(largest, " + ")
	}
	leastC1, leastC2 := comparison.BoundsOf(problem, p.Info(), sim.Cost{C1: r.C1, C2: r.C2}).Text(r.C1)
	return printable.Fprintf(w, `C1 = %s%s
C2 = %s%s%s
C3 = %s per symbol
time = %s = %s for packets of %s
`, printable.Count(r.C1, "round"), leastC1,
		packetsOf(r), sum, leastC2,
		printable.Count(r.C3, "multiply-add"),
		formula, report.Seconds(r.Seconds), printable.Count(int(r.SymbolsPerPacket), "symbol"))
}

// writeFronts prints what auto chooses from, and the structure that was found.
func writeFronts(stdout io.Writer, p *algo.Problem, model sim.Model) error {
	w := bufio.NewWriter(stdout) // keeps its first error
	structure, _ := p.Structure()
	printable.Fprintf(w, "structure: %s\n", structure)
	if !model.Paper() {
		printable.Fprintf(w, "network: %v\n", model.Network)
	}
	writeCandidates(w, p, model)
	return w.Flush()
}

// writeCandidates prints what auto chooses from by a model, cheapest first.
func writeCandidates(w *bufio.Writer, p *algo.Problem, model sim.Model) {
	list, rejected := algo.Candidates(p, model)
	slices.SortStableFunc(list, func(a, b algo.Candidate) int {
		if (a.Broken == "") != (b.Broken == "") { // what may not be chosen comes last
			return cmp.Compare(a.Broken, b.Broken)
		}
		return cmp.Compare(a.Time, b.Time)
	})
	type column = report.Column[algo.Candidate]
	cut, _ := p.BoundCut(model)
	bounds, formula := report.Number(cut)+" packets", ""
	traffic := []column{
		{Name: "p", Value: func(c algo.Candidate) any { return c.Plan.Info().Ports }},
		{Name: "rounds", Value: func(c algo.Candidate) any { return c.Cost.C1 }},
		{Name: "messages", Unit: "of a processor", Value: func(c algo.Candidate) any { return c.Cost.Messages() }},
		{Name: "packets", Unit: "of a processor", Value: func(c algo.Candidate) any { return report.Number(c.Cost.NodePackets()) }},
	}
	if p.Ports > 0 {
		b := p.Bound(p.Ports, 1)
		formula = "C1·β + C2·W·τ + C3·W·γ"
		bounds = fmt.Sprintf("C1 %d, C2 %d; C2 of packets in pieces %s", b.C1, b.C2, report.Number(cut))
		traffic = []column{
			{Name: "C1", Unit: "rounds", Value: func(c algo.Candidate) any { return c.Cost.C1 }},
			{Name: "C2", Unit: "packets", Value: func(c algo.Candidate) any { return report.Number(c.Cost.PacketC2()) }},
		}
	}
	printable.Fprintf(w, "bounds: %s\n", bounds)
	report.Text(w, slices.Concat([]column{
		{Name: "algorithm", Value: func(c algo.Candidate) any { return c.Plan.Info().Name() }},
		{Name: "parameters", Value: func(c algo.Candidate) any { return c.Plan.Info().Parameters }},
	}, traffic, []column{
		{Name: "C3", Unit: "multiply-adds", Value: func(c algo.Candidate) any { return c.Cost.PacketC3() }},
		{Name: "memory", Unit: "packets", Value: func(c algo.Candidate) any { return c.Memory }},
		{Name: "time", Unit: formula, Value: func(c algo.Candidate) any { return report.Seconds(c.Time.Seconds()) }},
		{Name: "limit", Value: func(c algo.Candidate) any { return c.Broken }},
	}), list)
	for i, r := range rejected {
		if i == 0 {
			printable.Fprintf(w, "\nnot possible:\n")
		}
		printable.Fprintf(w, "%s: %s\n", r.Algorithm, selection.Message(r.Reason))
	}
}

// Verbs returns those that only read and print.
func Verbs(s *session.Invocation) []*cobra.Command {
	return []*cobra.Command{newPlan(s), newCheck(s), newCost(s), newMatrix(s), newAlgorithms(), newFields()}
}
