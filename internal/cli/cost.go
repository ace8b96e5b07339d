package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
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

const costHelp = `Print what each algorithm costs, with the lower bounds: C1 in rounds, C2 in
packets, and the time C1·β + C2·W·τ in the model, where W is the number of symbols of
a packet. The costs are counted from the schedules.

Without --matrix it prints the algorithms that take any matrix. With it, those that
take this one as well: of a family of plans the cheapest by β and τ, and under
front C1/C2 of every plan, of any algorithm, that no other one beats in both. What
does not exist at some K stays empty.

bound is the lower bound for every matrix; min_cut that for C2 in the least number
of rounds, known where K is a power of p+1.`

func newCost() *cobra.Command {
	o := &costOptions{}
	cmd := &cobra.Command{
		Use:   "cost [flags] -k K",
		Short: "Compare the costs of the algorithms, for many K",
		Long:  costHelp,
		Example: `  volley cost -k 2..64
  volley cost -k 8,16,32,64 -p 2 --size 64KiB --format csv
  volley cost --field 257 --matrix lagrange -k 16,24,32,48,64,96,128`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCost(cmd, o) },
	}
	o.addMatrix(cmd)
	f := cmd.Flags()
	f.Lookup("matrix").DefValue = "any matrix"
	f.StringVarP(&o.processors, "processors", "k", "2..64", "numbers of processors: a list such as 4,8,16..20")
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
	costs    map[string]sim.Cost // by algorithm; of those that exist
	front    string              // of a given matrix: "C1/C2 C1/C2", undominated
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
	if o.algorithm == algo.Auto {
		return usagef("--algorithm auto: the table shows what auto chooses from: leave it out, or name one")
	}
	algorithms := algo.Algorithms()
	if o.algorithm != "" {
		one, err := algo.Lookup(o.algorithm)
		if err != nil {
			return usage(err)
		}
		algorithms = []algo.Algorithm{one}
	}
	spec, err := o.spec(cmd)
	if err != nil {
		return err
	}
	given := cmd.Flags().Changed("matrix")
	if !given {
		if spec, err = matrix.ParseSpec("random:0"); err != nil { // no algorithm for every matrix looks at it
			return err
		}
		if o.algorithm != "" && algorithms[0].Structured() {
			return usagef("--algorithm %s: it is for %s: say which with --matrix", o.algorithm, algorithms[0].Problem)
		}
		algorithms = slices.DeleteFunc(algorithms, algo.Algorithm.Structured)
	}
	var rows []costRow
	var missing error // why the matrix does not exist, at the last K where it does not
	exists := false
	for _, k := range ks {
		if err := cmd.Context().Err(); err != nil {
			return errInterrupted
		}
		row := costRow{k: k, costs: map[string]sim.Cost{}}
		if row.ports, err = algo.Ports(k, o.ports); err != nil {
			return usage(err)
		}
		if a, err := spec.Build(f, k); err != nil {
			missing = err
		} else if err := row.count(a, algorithms, o.planOrder(), model); err != nil {
			return usage(err)
		}
		exists = exists || len(row.costs) > 0
		rows = append(rows, row)
	}
	if !exists && missing != nil {
		return usage(missing)
	}
	if !exists {
		return usagef("--algorithm %s: it is for %s", o.algorithm, algorithms[0].Problem)
	}
	algorithms = slices.DeleteFunc(algorithms, func(a algo.Algorithm) bool {
		return !slices.ContainsFunc(rows, func(r costRow) bool { _, ok := r.costs[a.Name]; return ok })
	})
	columns := costColumns(algorithms, model)
	if given {
		columns = append(columns, report.Column[costRow]{Name: "front", Unit: "C1/C2", Value: func(r costRow) any { return r.front }})
	}
	w := cmd.OutOrStdout()
	if err := report.Write(w, o.format, columns, rows); err != nil {
		return err
	}
	if o.format != "text" || len(rows) < 2 || given {
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

// count counts the costs for the matrix a. Of a family of plans it is that of least
// model time.
func (r *costRow) count(a matrix.Matrix, algorithms []algo.Algorithm, order algo.Order, model sim.Model) error {
	p, err := algo.NewProblem(a, r.ports, order)
	if err != nil {
		return err
	}
	var all []sim.Cost
	for _, x := range algorithms {
		plans, err := x.Plans(p)
		if errors.Is(err, algo.ErrStructure) {
			continue
		}
		if err != nil {
			return err
		}
		for i, q := range plans {
			cost := sim.Count(q)
			all = append(all, cost)
			if best, ok := r.costs[x.Name]; i == 0 || ok && model.Time(cost) < model.Time(best) {
				r.costs[x.Name] = cost
			}
		}
	}
	r.front = front(all)
	return nil
}

// front lists C1/C2 of the costs that no other one beats, the fewest rounds first.
func front(costs []sim.Cost) string {
	slices.SortFunc(costs, func(a, b sim.Cost) int { return cmp.Or(cmp.Compare(a.C1, b.C1), cmp.Compare(a.C2, b.C2)) })
	var list []string
	for i, least := 0, math.MaxInt; i < len(costs); i++ {
		if c := costs[i]; c.C2 < least {
			least = c.C2
			list = append(list, fmt.Sprintf("%d/%d", c.C1, c.C2))
		}
	}
	return strings.Join(list, " ")
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
			report.Column[costRow]{Name: a.Name + "_C1", Head: a.Name, Unit: "C1", Value: ofCost(a, func(c sim.Cost) any { return c.C1 })},
			report.Column[costRow]{Name: a.Name + "_C2", Join: "/", Unit: "C2", Value: ofCost(a, func(c sim.Cost) any { return c.C2 })},
			report.Column[costRow]{
				Name: a.Name + "_seconds", Join: " ", Unit: "time",
				Value: ofCost(a, func(c sim.Cost) any { return model.Time(c).Seconds() }),
				Text:  func(v any) string { return brief(v.(float64)) },
			})
	}
	return columns
}

// ofCost returns a cell of the algorithm's cost, which is empty where it has none.
func ofCost(a algo.Algorithm, value func(sim.Cost) any) func(costRow) any {
	return func(r costRow) any {
		if c, ok := r.costs[a.Name]; ok {
			return value(c)
		}
		return nil
	}
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
