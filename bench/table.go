package bench

import (
	"fmt"
	"io"
	"strings"

	"volley/report"
)

// Write writes the results as a table: text under a line for the machine; csv and json
// with the machine in every row, so that those of several can be put together.
func Write(w io.Writer, format string, m Machine, results []Result) error {
	if format != "text" {
		return report.Write(w, format, append(columns(), machineColumns(m)...), results)
	}
	if _, err := fmt.Fprintf(w, "%v\n\n", m); err != nil {
		return err
	}
	return report.Write(w, format, columns(), results)
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
		{Name: "seconds", Head: "time", Unit: "median", Value: func(r Result) any { return r.Seconds }, Text: report.Seconds},
		{Name: "check_seconds", Head: "check", Value: func(r Result) any { return positive(r.Check) }, Text: report.Seconds},
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

func machineColumns(m Machine) []report.Column[Result] {
	same := func(name string, value any) report.Column[Result] {
		return report.Column[Result]{Name: name, Value: func(Result) any { return value }}
	}
	return []report.Column[Result]{
		same("cpu", m.CPU), same("cores", m.Cores), same("go", m.Go), same("instructions", strings.Join(m.Instructions, " ")),
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
