package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/report"
	"volley/sim"
)

type costOptions struct {
	selection
	processors string
	size       string
	format     string
}

const costHelp = `Print what each algorithm costs for any matrix, with the lower bounds: C1 in
rounds, C2 in packets, and the time C1·β + C2·W·τ in the model, where W is the
number of symbols of a packet. The costs are counted from the schedules.

bound is the lower bound for every matrix; min_cut that for C2 in the least number
of rounds, known where K is a power of p+1.`

func newCost() *cobra.Command {
	o := &costOptions{}
	cmd := &cobra.Command{
		Use:     "cost [flags] -k K",
		Short:   "Compare the costs of the algorithms, for many K",
		Long:    costHelp,
		Example: "  volley cost -k 2..64\n  volley cost -k 8,16,32,64 -p 2 --size 64KiB --format csv",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runCost(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.processors, "processors", "k", "2..64", "numbers of processors: a list such as 4,8,16..20")
	f.StringVar(&o.field, "field", "2^8", "finite field, for the size of a symbol")
	f.IntVarP(&o.ports, "ports", "p", 1, "messages a processor sends, and receives, at a time")
	f.StringVar(&o.algorithm, "algorithm", "", "only this one")
	o.addModel(cmd)
	addSize(f, &o.size)
	f.StringVar(&o.format, "format", "text", strings.Join(report.Formats, ", "))
	return cmd
}

// addSize adds the flag of the packet size that a model time is for.
func addSize(f *pflag.FlagSet, size *string) {
	f.StringVar(size, "size", "1MiB", "bytes of a packet, for the time in the model")
}

// costRow is the costs for one K.
type costRow struct {
	k, ports int
	costs    map[string]sim.Cost // by algorithm
}

func runCost(cmd *cobra.Command, o *costOptions) error {
	if err := checkFormat(o.format, report.Formats); err != nil {
		return err
	}
	f, err := field.Parse(o.field)
	if err != nil {
		return usage(err)
	}
	ks, err := parseRanges(o.processors)
	if err != nil {
		return usagef("-k %q: %w", o.processors, err)
	}
	symbols, err := packetSymbols(f, o.size)
	if err != nil {
		return err
	}
	model, err := o.model(f, symbols)
	if err != nil {
		return err
	}
	algorithms := algo.Algorithms()
	if o.algorithm == algo.Auto {
		return usagef("--algorithm auto: the table shows what auto chooses from: leave it out, or name one")
	}
	if o.algorithm != "" {
		one, err := algo.Lookup(o.algorithm)
		if err != nil {
			return usage(err)
		}
		algorithms = []algo.Algorithm{one}
	}
	var rows []costRow
	for _, k := range ks {
		row, err := countCosts(f, k, o.ports, algorithms)
		if err != nil {
			return usage(err)
		}
		if err := cmd.Context().Err(); err != nil {
			return errInterrupted
		}
		rows = append(rows, row)
	}
	w := cmd.OutOrStdout()
	if err := report.Write(w, o.format, costColumns(algorithms, model), rows); err != nil {
		return err
	}
	if o.format != "text" || len(rows) < 2 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\nmean C2 / lower bound over %d K\n", len(rows)); err != nil {
		return err
	}
	return report.Text(w, []report.Column[algo.Algorithm]{
		{Name: "algorithm", Value: func(a algo.Algorithm) any { return a.Name }},
		{Name: "ratio", Value: func(a algo.Algorithm) any { return fmt.Sprintf("%.3f", meanRatio(rows, a.Name)) }},
	}, algorithms)
}

// countCosts counts the costs for k processors, for which any matrix will do: no
// schedule here looks at it.
func countCosts(f field.Field, k, ports int, algorithms []algo.Algorithm) (costRow, error) {
	row := costRow{k: k, costs: map[string]sim.Cost{}}
	var err error
	if row.ports, err = algo.Ports(k, ports); err != nil {
		return row, err
	}
	a, err := matrix.Random(f, k, k, 0)
	if err != nil {
		return row, err
	}
	for _, x := range algorithms {
		p, err := x.Compile(a, ports)
		if err != nil {
			return row, err
		}
		row.costs[x.Name] = sim.Count(p)
	}
	return row, nil
}

func costColumns(algorithms []algo.Algorithm, model sim.Model) []report.Column[costRow] {
	columns := []report.Column[costRow]{
		{Name: "K", Value: func(r costRow) any { return r.k }},
		{Name: "p", Value: func(r costRow) any { return r.ports }},
		{Name: "bound_C1", Head: "bound", Unit: "C1", Value: func(r costRow) any { return algo.BoundC1(r.k, r.ports) }},
		{Name: "bound_C2", Join: "/", Unit: "C2", Value: func(r costRow) any { return algo.BoundC2(r.k, r.ports) }},
		{Name: "min_cut", Unit: "C2", Value: func(r costRow) any {
			if b, ok := algo.BoundMinCut(r.k, r.ports); ok {
				return b
			}
			return nil
		}},
	}
	for _, a := range algorithms {
		columns = append(columns,
			report.Column[costRow]{Name: a.Name + "_C1", Head: a.Name, Unit: "C1", Value: func(r costRow) any { return r.costs[a.Name].C1 }},
			report.Column[costRow]{Name: a.Name + "_C2", Join: "/", Unit: "C2", Value: func(r costRow) any { return r.costs[a.Name].C2 }},
			report.Column[costRow]{
				Name: a.Name + "_seconds", Join: " ", Unit: "time",
				Value: func(r costRow) any { return model.Time(r.costs[a.Name]).Seconds() },
				Text:  func(v any) string { return brief(v.(float64)) },
			})
	}
	return columns
}

// meanRatio returns the mean of C2 over its lower bound, for the K that have
// one.
func meanRatio(rows []costRow, name string) float64 {
	total, n := 0.0, 0
	for _, r := range rows {
		if bound := algo.BoundC2(r.k, r.ports); bound > 0 {
			total += float64(r.costs[name].C2) / float64(bound)
			n++
		}
	}
	return total / float64(max(1, n))
}

// The most values of K in a table, and the largest.
const (
	mostRows = 1 << 16
	largestK = 1 << 20
)

// parseRanges reads numbers and ranges a..b, separated by commas.
func parseRanges(s string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "..")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 1 || b < a || b > largestK {
			return nil, fmt.Errorf("%q: want a number or a range a..b from 1 to %d", part, largestK)
		}
		if len(list)+b-a >= mostRows {
			return nil, fmt.Errorf("more than %d values", mostRows)
		}
		for k := a; k <= b; k++ {
			list = append(list, k)
		}
	}
	return list, nil
}
