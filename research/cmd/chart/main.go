// Chart draws what the algorithms cost beyond what volley cost draws: against the size of a packet, against what a
// processor may hold or do, and over simulated runs with jitter and stragglers.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"volley/internal/atomicfile"
	"volley/internal/comparison"
	"volley/internal/draw"
	"volley/internal/selection"
	_ "volley/research"
	"volley/research/simulate"
)

const usage = `Draw what the algorithms cost, for many K.

  chart -k 2..256 --plot ratio -o ratio.svg
  chart --matrix cauchy -k 64 --plot size -o crossings.png
  chart -k 16,64 --plot time --jitter 0.2 --stragglers 0.05x4 -o times.csv

--plot c1, c2, ratio (of C2 to its lower bound) and time are against K. For one
K, --plot size draws the time of every plan against the size of a packet and
marks where which plan is the cheapest; --plot memory and compute draw the
least time against the packets, or multiply-adds, allowed. The algorithms and
their costs are those of volley cost: volley help costs.

--jitter and --stragglers draw the median and the 95 % quantile of the times of
simulated runs, in which a processor goes on to the next round when its own
messages of the last one have arrived. Each message takes β·X + d·W·τ·Y for d
packets. X and Y are lognormal of mean 1, and --jitter 0.2 is their standard
deviation; of exponential:0.2 they are 1 and a delay of that mean. With
--stragglers 0.05x4 each processor is with probability 0.05 one whose messages
take 4 times as long.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run draws the chart of a command line and returns the exit code: 2 for a wrong argument.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := execute(ctx, args, stdout)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "chart:", selection.Message(err))
	if wrong := new(selection.Error); errors.As(err, &wrong) {
		return wrong.ExitCode()
	}
	return 1
}

// faultf says what is wrong with a flag.
func faultf(flag, format string, args ...any) error {
	return &selection.Error{Flag: flag, Err: fmt.Errorf(format, args...)}
}

// plots are the values of --plot.
var plots = append(slices.Clone(draw.Costs), "size", "memory", "compute")

// A costJob is a comparison to draw.
type costJob struct {
	comparison.Comparison
	noise           noiseFlags
	ports, over     string
	plot, output    string
	bytes           int64 // of a packet
	firstSize, last int64 // of --plot size

	times map[simulated]simulate.Sample // of simulated runs; nil: there are none
	runs  string                        // what they are
}

func execute(ctx context.Context, args []string, stdout io.Writer) error {
	j := &costJob{}
	if help, err := j.parse(args); help != "" || err != nil {
		fmt.Fprint(stdout, help)
		return err
	}
	rows, err := j.Rows(ctx)
	if err != nil {
		return err
	}
	var drawing bytes.Buffer
	if c, end := j.chart(rows), filepath.Ext(j.output); end == ".csv" {
		err = writePoints(&drawing, c)
	} else if picture, empty := c.Picture(); empty != nil {
		return faultf("plot", "--plot %s: every value there is is 0, which has no place on its axis: want a larger K, or β or τ", j.plot)
	} else {
		err = picture.Write(&drawing, cmp.Or(strings.TrimPrefix(end, "."), "svg"))
	}
	if err != nil {
		return err
	}
	if j.output != "" {
		return atomicfile.Write(j.output, drawing.Bytes())
	}
	_, err = stdout.Write(drawing.Bytes())
	return err
}

// parse reads and checks the arguments. It returns the help where they ask for that.
func (j *costJob) parse(args []string) (help string, err error) {
	s := &selection.Selection{}
	f := pflag.NewFlagSet("chart", pflag.ContinueOnError)
	f.SortFlags, f.Usage = false, func() {}
	var processors, algorithms string
	f.StringVar(&j.plot, "plot", "c2", "`WHAT` to draw: "+strings.Join(plots, ", "))
	f.StringVarP(&j.output, "output", "o", "", "`FILE` to write, .svg, .png, .pdf, .tex for LaTeX, or .csv for the points (default: SVG to stdout)")
	f.StringVarP(&processors, "processors", "k", "2..64", "`K`, the numbers of processors: a list such as 4,8,16..20")
	f.StringVar(&algorithms, "algorithm", "", "only these `NAMES` that volley algorithms lists, with commas")
	s.AddSize(f)
	f.Lookup("size").Usage += "; for --plot size a range (default " + usualSizes + ")"
	s.AddMatrix(f)
	s.AddModel(f, selection.PaperModel)
	s.AddLimits(f)
	j.ports = "1"
	selection.MakeList(f, "ports", &j.ports)
	selection.MakeList(f, "rounds-over", &j.over)
	j.noise.add(f)
	switch err := f.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return usage + f.FlagUsagesWrapped(80), nil
	case err != nil:
		return "", &selection.Error{Err: err}
	case f.NArg() > 0:
		return "", faultf("", "%q: chart takes flags only", f.Arg(0))
	}
	s.SetDefaults()
	switch end := filepath.Ext(j.output); {
	case !slices.Contains(plots, j.plot):
		return "", faultf("plot", "--plot %q: want one of %s", j.plot, strings.Join(plots, ", "))
	case j.output != "" && !slices.Contains(append([]string{"csv"}, draw.Formats...), strings.TrimPrefix(end, ".")):
		return "", faultf("output", "-o %s: want a name that ends with .svg, .png, .pdf, .tex or .csv", j.output)
	case j.noise.given() && (j.plot != "time" || s.ByModel == selection.NetworkModel):
		return "", faultf("jitter", "--jitter and --stragglers simulate the links of --model paper and change times only: leave them out, or draw --plot time by that model")
	}
	j.Comparison = comparison.Comparison{Selection: s, Given: f.Changed("matrix"), AllPlans: j.sweeps() || j.trades()}
	if l := &s.Limits; j.trades() && l.Memory == 0 && l.Compute == 0 { // plans, too, that only limits make worth it
		l.Memory, l.Compute = math.MaxInt32, math.MaxInt32
	}
	if j.Processors, err = selection.ParseProcessors(processors); err != nil {
		return "", faultf("processors", "-k %q: %w", processors, err)
	}
	if j.Settings, err = comparison.Settings(j.ports, j.over); err != nil {
		return "", err
	}
	n := len(j.Processors) * len(j.Settings)
	switch {
	case n > selection.MostNumbers:
		return "", faultf("processors", "%d values of -k, for %d of -p and --rounds-over: want %d points at most", len(j.Processors), len(j.Settings), selection.MostNumbers)
	case j.AllPlans && n != 1:
		return "", faultf("plot", "--plot %s: it is for one K, one -p and one --rounds-over: say which", j.plot)
	}
	noise, err := j.noise.noise()
	if err != nil {
		return "", err
	}
	if noise != nil {
		j.runs = j.noise.describe(noise)
		j.simulate(noise)
	}
	if j.sweeps() {
		err = j.parseSizes(f.Changed("size"))
	} else {
		j.bytes, err = s.Bytes()
	}
	return "", cmp.Or(err, j.Prepare(algorithms, j.bytes))
}

// writePoints writes the points of a chart as CSV.
func writePoints(w io.Writer, c draw.Chart) error {
	out := csv.NewWriter(w)
	out.Write([]string{"series", c.X.Label, c.Y.Label})
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !math.IsNaN(p.Y) {
				out.Write([]string{s.Name, strconv.FormatFloat(p.X, 'g', -1, 64), strconv.FormatFloat(p.Y, 'g', -1, 64)})
			}
		}
	}
	out.Flush()
	return out.Error()
}

// sweeps reports whether times are wanted for many packet sizes.
func (j *costJob) sweeps() bool { return j.plot == "size" }

// trades reports whether the times of all plans are wanted against what they take.
func (j *costJob) trades() bool { return j.plot == "memory" || j.plot == "compute" }

// usualSizes are those of --plot size unless --size says others.
const usualSizes = "1KiB..64MiB"

// parseSizes sets the sizes of --plot size.
func (j *costJob) parseSizes(given bool) error {
	text := usualSizes
	if given {
		text = j.Selection.Size
	}
	first, last, _ := strings.Cut(text, "..")
	var errA, errB error
	j.firstSize, errA = selection.ParseSize(first)
	j.last, errB = selection.ParseSize(last)
	if errA != nil || errB != nil || j.firstSize < 1 || j.last <= j.firstSize || j.last > 1<<50 {
		return faultf("size", "--size %q: with --plot size want a range such as %s, up to 1PiB", text, usualSizes)
	}
	j.bytes = j.firstSize
	return nil
}
