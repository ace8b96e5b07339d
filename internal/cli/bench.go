package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"volley/algo"
	"volley/bench"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/report"
)

type benchOptions struct {
	cases      string
	processors string
	size       string
	algorithms string
	iterations int
	format     string
}

const benchHelp = `Measure the speed of encoding against other libraries, in the same run.

All processors are in this process, and packets in memory. The exit code is 3
where a coded packet is wrong. Let the machine be idle. The cases, and what the
columns mean: volley help measuring`

func newBench() *cobra.Command {
	o := &benchOptions{iterations: 11}
	var names []string
	for _, c := range bench.Cases() {
		names = append(names, c.Name)
	}
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure the speed of encoding against other libraries",
		Long:  benchHelp,
		Example: `  volley bench --case dense -k 4,16 --size 64KiB -n 3
  volley bench --case dft -k 8 --size 4KiB -n 2 --algorithm dft --format csv`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.cases, "case", strings.Join(names, ","), "`CASES` to measure, with commas")
	f.StringVarP(&o.processors, "processors", "k", "", "`K`, the numbers of processors: a list such as 4,8,16..20 (default: those of each case)")
	f.StringVar(&o.size, "size", "", "`BYTES` of a packet (default: that of each case)")
	f.StringVar(&o.algorithms, "algorithm", algo.Auto, "`NAMES` that volley algorithms lists, or auto, with commas")
	f.VarP(selection.AtLeast{Value: &o.iterations, Least: 1, Unset: 0}, "iterations", "n", "`N`, how often each is run after a first time")
	f.StringVar(&o.format, "format", "text", "`FORMAT`: "+strings.Join(report.Formats, ", "))
	return cmd
}

// A measurement is a case with K processors and packets of a size in bytes.
type measurement struct {
	bench.Case
	k    int
	size int64
}

func runBench(cmd *cobra.Command, o *benchOptions) error {
	list, algorithms, err := o.prepare()
	if err != nil {
		return err
	}
	results, err := o.measure(cmd.Context(), cmd.ErrOrStderr(), list, algorithms)
	if err != nil {
		return err
	}
	if err := bench.Write(cmd.OutOrStdout(), o.format, bench.This(), results); err != nil {
		return err
	}
	return checkResults(results)
}

// checkResults returns an error where coded packets were wrong.
func checkResults(results []bench.Result) error {
	for _, r := range results {
		if r.Wrong > 0 {
			return wrongf("case %s by %s with K = %d: %s wrong", r.Case, r.Algorithm, r.K, printable.Count(r.Wrong, "coded packet"))
		}
	}
	return nil
}

// prepare checks all arguments.
func (o *benchOptions) prepare() (list []measurement, algorithms []string, err error) {
	if err := checkFormat(o.format, report.Formats); err != nil {
		return nil, nil, err
	}
	for _, name := range selection.AlgorithmNames(o.algorithms) {
		if name != algo.Auto {
			if _, err := algo.Lookup(name); err != nil {
				return nil, nil, usage(err)
			}
		}
		algorithms = append(algorithms, name)
	}
	var ks []int
	if o.processors != "" {
		if ks, err = selection.ParseProcessors(o.processors); err != nil {
			return nil, nil, usagef("-k %q: %w", o.processors, err)
		}
	}
	var size int64
	if o.size != "" {
		if size, err = selection.ParseSize(o.size); err != nil {
			return nil, nil, usagef("--size %q: %w", o.size, err)
		}
	}
	for _, name := range selection.Names(o.cases) {
		c, err := bench.Lookup(name)
		if err != nil {
			return nil, nil, usage(err)
		}
		m := measurement{Case: c, size: c.Size}
		if o.size != "" {
			m.size = size
		}
		if ks != nil {
			c.Ks = ks
		}
		for _, m.k = range c.Ks {
			if err := c.Check(m.k, m.size); err != nil {
				return nil, nil, usage(err)
			}
			list = append(list, m)
		}
	}
	return list, algorithms, nil
}

// measure measures all, and says on a terminal how far it is.
func (o *benchOptions) measure(ctx context.Context, stderr io.Writer, list []measurement, algorithms []string) ([]bench.Result, error) {
	const begin = "\r\x1b[K" // of the line, which is empty then
	terminal := isTerminal(stderr)
	if terminal {
		defer fmt.Fprint(stderr, begin)
	}
	var results []bench.Result
	var unsuited error
	for _, m := range list {
		slog.Info("measuring", "case", m.Name, "K", m.k, "bytes", m.size)
		say := func(done int) {
			if terminal {
				fmt.Fprintf(stderr, "%s%s, K = %d: %d of %d", begin, m.Name, m.k, done, o.iterations)
			}
		}
		say(0)
		some, err := m.Measure(ctx, m.k, m.size, bench.Options{Algorithms: algorithms, Iterations: o.iterations, Progress: say})
		switch {
		case errors.Is(err, algo.ErrStructure):
			unsuited = err
		case err != nil:
			return nil, err
		}
		results = append(results, some...)
	}
	if len(results) == 0 {
		return nil, usage(unsuited)
	}
	return results, nil
}
