package bench

import (
	"fmt"
	"io"
	"slices"

	"volley/internal/report"
)

// Write writes the results as a table: text under a line for the machine; csv and json
// with the machine in every row, so that those of several can be put together. Of results
// of several sets of instructions the text has the ratios only.
func Write(w io.Writer, format string, results []Result) error {
	if format != "text" {
		return report.Write(w, format, append(columns(), machineColumns()...), results)
	}
	if len(results) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "%v\n\n", results[0].Machine); err != nil {
		return err
	}
	if slices.ContainsFunc(results, func(r Result) bool { return r.Set != results[0].Set }) {
		return writeSets(w, results)
	}
	return report.Write(w, format, columns(), results)
}

// writeSets writes a line for each case and K, and in it the ratio for each set of instructions.
func writeSets(w io.Writer, results []Result) error {
	type column = report.Column[[]Result]
	var rows [][]Result
	var sets []string
	for _, r := range results {
		if !slices.Contains(sets, r.Set) {
			sets = append(sets, r.Set)
		}
		// Two results of the same algorithm and set, which is the same set twice, are two rows.
		i := slices.IndexFunc(rows, func(row []Result) bool {
			return row[0].Case == r.Case && row[0].K == r.K && row[0].Size == r.Size && row[0].Algorithm == r.Algorithm &&
				!slices.ContainsFunc(row, func(previous Result) bool { return previous.Set == r.Set })
		})
		if i < 0 {
			rows = append(rows, []Result{r})
		} else {
			rows[i] = append(rows[i], r)
		}
	}
	var list []column
	for _, c := range columns() {
		if slices.Contains([]string{"case", "field", "size", "K", "algorithm", "peer"}, c.Name) {
			list = append(list, column{Name: c.Name, Text: c.Text, Value: func(row []Result) any { return c.Value(row[0]) }})
		}
	}
	for _, set := range sets {
		list = append(list, column{Name: set, Unit: "ratio", Text: ratio, Value: func(row []Result) any {
			for _, r := range row {
				if r.Set == set {
					return r.Ratio()
				}
			}
			return nil
		}})
	}
	list = append(list, column{Name: "#wrong", Value: func(row []Result) any {
		wrong := 0
		for _, r := range row {
			wrong += r.Wrong
		}
		return wrong
	}})
	return report.Write(w, "text", list, rows)
}

func columns() []report.Column[Result] {
	type column = report.Column[Result]
	return []column{
		{Name: "case", Value: func(r Result) any { return r.Case }},
		{Name: "field", Value: func(r Result) any { return r.Field }},
		{Name: "size", Value: func(r Result) any { return r.Size }, Text: func(v any) string { return Size(v.(int64)) }},
		{Name: "K", Value: func(r Result) any { return r.K }},
		{Name: "p", Value: func(r Result) any { return r.Ports }},
		{Name: "algorithm", Value: func(r Result) any { return r.Algorithm }},
		{Name: "C1", Unit: "rounds", Value: func(r Result) any { return r.C1 }},
		{Name: "C2", Unit: "packets", Value: func(r Result) any { return r.C2 }, Text: report.Number},
		{Name: "C3", Unit: "per symbol", Value: func(r Result) any { return r.C3 }},
		{Name: "iterations", Head: "runs", Value: func(r Result) any { return r.Iterations }},
		{Name: "seconds", Head: "time", Unit: "median", Value: func(r Result) any { return r.Seconds }, Text: report.Seconds},
		{Name: "check_seconds", Head: "check", Value: func(r Result) any { return positive(r.Check) }, Text: report.Seconds},
		{Name: "check_floor_seconds", Head: "its floor", Value: func(r Result) any { return positive(r.Floor) }, Text: report.Seconds},
		{Name: "compile_share", Head: "compile", Unit: "first run", Value: func(r Result) any { return r.Compile }, Text: percent},
		{Name: "algbw", Unit: "GB/s", Value: func(r Result) any { return 1e-9 * r.AlgorithmBandwidth() }, Text: report.Number},
		{Name: "busbw", Unit: "GB/s", Value: func(r Result) any { return 1e-9 * r.BusBandwidth() }, Text: report.Number},
		{Name: "wrong", Head: "#wrong", Value: func(r Result) any { return r.Wrong }},
		{Name: "peer", Value: func(r Result) any { return r.Peer }},
		{Name: "peer_seconds", Head: "its time", Unit: "median", Value: func(r Result) any { return r.PeerSeconds }, Text: report.Seconds},
		{Name: "ratio", Unit: "to peer", Value: func(r Result) any { return r.Ratio() }, Text: ratio},
		{Name: "memcpy_seconds", Head: "memcpy", Unit: "median", Value: func(r Result) any { return positive(r.CopySeconds) }, Text: report.Seconds},
	}
}

func machineColumns() []report.Column[Result] {
	type column = report.Column[Result]
	return []column{
		{Name: "cpu", Value: func(r Result) any { return r.CPU }},
		{Name: "cores", Value: func(r Result) any { return r.Cores }},
		{Name: "go", Value: func(r Result) any { return r.Go }},
		{Name: "instructions", Value: func(r Result) any { return r.Instructions }},
		{Name: "kernels", Value: func(r Result) any { return r.Kernels }},
		{Name: "set", Value: func(r Result) any { return r.Set }},
	}
}

// positive returns a cell that is empty where there is no such time.
func positive(x float64) any {
	if x == 0 {
		return nil
	}
	return x
}

func ratio(v any) string   { return fmt.Sprintf("%.2f", v) }
func percent(v any) string { return fmt.Sprintf("%.0f %%", 100*v.(float64)) }

// Size writes a number of bytes in the largest unit in which it is whole.
func Size(n int64) string {
	unit := 0
	for n > 0 && n%1024 == 0 && unit < 3 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%d %s", n, []string{"B", "KiB", "MiB", "GiB"}[unit])
}
