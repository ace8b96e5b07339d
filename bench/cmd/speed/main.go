// Speed measures the speed of encoding in one process against other libraries, in the same run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"volley/algo"
	"volley/bench"
	"volley/bench/instructions"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
)

const usage = `Measure the speed of encoding against other libraries, in the same run.

  speed --case dense -k 4,16 --size 64KiB -n 3
  speed --case dft -k 8 --size 4KiB -n 2 --algorithm dft --format csv
  speed --instructions all,no-gfni,avx2,none

All processors are in this process, and packets in memory. Let the machine be
idle. docs/metrics.md explains the table. The exit code is 3 where a coded
packet is wrong.

With --instructions both sides do without some of the processor's instructions,
in a process for each set: all, no-gfni (GFNI), avx2 (GFNI and AVX-512), none
(assembly). The table then has the ratios only; csv and json have everything.
For none the go command builds speed once more, and runs in the checkout. There
klauspost takes seconds for K = 128: all cases take some minutes.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// A usageError is about the arguments.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errWrong is the error where coded packets are wrong.
var errWrong = errors.New("wrong")

// run measures what the arguments say and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := speed(ctx, args, stdout, stderr)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "speed:", selection.Message(err))
	switch {
	case errors.As(err, new(usageError)):
		return 2
	case errors.Is(err, errWrong):
		return 3
	}
	return 1
}

type options struct {
	cases      string
	processors string
	size       string
	algorithms string
	iterations int
	sets       string
	profiles   string
	format     string
}

func speed(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := &options{iterations: 11}
	var names []string
	cases := "\nCases:\n"
	for _, c := range bench.Cases() {
		names = append(names, c.Name)
		cases += fmt.Sprintf("  %-10s %s\n", c.Name, c.Doc)
	}
	f := pflag.NewFlagSet("speed", pflag.ContinueOnError)
	f.SortFlags, f.Usage = false, func() {}
	f.StringVar(&o.cases, "case", strings.Join(names, ","), "`CASES` to measure, with commas")
	f.StringVarP(&o.processors, "processors", "k", "", "`K`, the numbers of processors: a list such as 4,8,16..20 (default: those of each case)")
	f.StringVar(&o.size, "size", "", "`BYTES` of a packet (default: that of each case)")
	f.StringVar(&o.algorithms, "algorithm", algo.Auto, "`NAMES` that volley algorithms lists, or auto, with commas")
	f.VarP(selection.Positive(&o.iterations), "iterations", "n", fmt.Sprintf("`N`, how often each is run after a first time; fewer, but %d, where a row takes over %v", bench.LeastIterations, bench.MostTime))
	f.StringVar(&o.sets, "instructions", "", "`SETS` of instructions to keep to, with commas: "+strings.Join(instructions.Sets, ", "))
	f.StringVar(&o.profiles, "profiles", "", "`DIR` for profiles of the CPU, one of each row, for go tool pprof")
	f.StringVar(&o.format, "format", "text", "`FORMAT`: "+strings.Join(report.Formats, ", "))
	switch err := f.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprint(stdout, usage, f.FlagUsagesWrapped(80), cases)
		return err
	case err != nil:
		return usageError{err}
	}
	if f.NArg() > 0 {
		return usagef("%q: speed takes flags only", f.Arg(0))
	}
	list, algorithms, err := o.prepare()
	if err != nil {
		return err
	}
	var results []bench.Result
	if o.sets == "" {
		results, err = o.measure(ctx, stderr, list, algorithms)
	} else {
		results, err = o.measureSets(ctx, stderr, f)
	}
	if err != nil {
		return err
	}
	if err := bench.Write(stdout, o.format, results); err != nil {
		return err
	}
	return checkResults(results)
}

// A measurement is a case with K processors and packets of a size in bytes.
type measurement struct {
	bench.Case
	k    int
	size int64
}

// checkResults returns an error where coded packets were wrong.
func checkResults(results []bench.Result) error {
	for _, r := range results {
		if r.Wrong > 0 {
			return fmt.Errorf("case %s by %s with K = %d: %s %w", r.Case, r.Algorithm, r.K, printable.Count(r.Wrong, "coded packet"), errWrong)
		}
	}
	return nil
}

// prepare checks all arguments.
func (o *options) prepare() (list []measurement, algorithms []string, err error) {
	if !slices.Contains(report.Formats, o.format) {
		return nil, nil, usagef("--format %q: want one of %s", o.format, strings.Join(report.Formats, ", "))
	}
	for _, name := range selection.AlgorithmNames(o.algorithms) {
		if name != algo.Auto {
			if _, err := algo.Lookup(name); err != nil {
				return nil, nil, usageError{err}
			}
		}
		algorithms = append(algorithms, name)
	}
	for set := range strings.SplitSeq(o.sets, ",") {
		if o.sets != "" && !slices.Contains(instructions.Sets, set) {
			return nil, nil, usagef("--instructions %q: want some of %s", set, strings.Join(instructions.Sets, ", "))
		}
	}
	if o.profiles != "" && o.sets != "" {
		return nil, nil, usagef("--profiles takes no --instructions")
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
	for name := range strings.SplitSeq(o.cases, ",") {
		c, err := bench.Lookup(name)
		if err != nil {
			return nil, nil, usageError{err}
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
				return nil, nil, usageError{err}
			}
			list = append(list, m)
		}
	}
	return list, algorithms, nil
}

// measure measures all, and says on a terminal how far it is.
func (o *options) measure(ctx context.Context, stderr io.Writer, list []measurement, algorithms []string) ([]bench.Result, error) {
	const begin = "\r\x1b[K" // of the line, which is empty then
	file, _ := stderr.(*os.File)
	terminal := file != nil && term.IsTerminal(int(file.Fd()))
	if terminal {
		defer fmt.Fprint(stderr, begin)
	}
	var results []bench.Result
	var unsuited error
	for _, m := range list {
		say := func(completed int) {
			if terminal {
				fmt.Fprintf(stderr, "%s%s, K = %d: %d of %d", begin, m.Name, m.k, completed, o.iterations)
			}
		}
		say(0)
		measured, err := m.Measure(ctx, m.k, m.size, bench.Options{Algorithms: algorithms, Iterations: o.iterations, Progress: say, Profiles: o.profiles})
		switch {
		case errors.Is(err, algo.ErrStructure):
			unsuited = err
		case err != nil:
			return nil, err
		}
		results = append(results, measured...)
	}
	if len(results) == 0 {
		return nil, usageError{unsuited}
	}
	return results, nil
}
