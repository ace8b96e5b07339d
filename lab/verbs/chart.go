package verbs

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"volley/internal/cli/session"
	"volley/internal/comparison"
	"volley/internal/selection"
	"volley/lab/draw"
)

const chartHelp = `Draw what the algorithms cost, for many K.

--plot c1, c2, ratio (of C2 to its lower bound) and time are against K. For one
K, --plot size draws the time of every plan against the size of a packet and
marks where which plan is the cheapest; --plot memory and compute draw the
least time against the packets, or multiply-adds, allowed. The algorithms and
their costs are those of volley cost: volley help costs.`

const chartExamples = `  volley-lab chart -k 2..256 --plot ratio -o ratio.svg
  volley-lab chart --matrix cauchy -k 64 --plot size -o crossings.png
  volley-lab chart -k 16,64 --plot time -o times.csv`

// plots are the values of --plot.
var plots = append(slices.Clone(draw.Costs), "size", "memory", "compute")

// A costJob is a comparison to draw.
type costJob struct {
	comparison.Comparison
	ports, excess   string
	processors      string
	algorithms      string
	plot, output    string
	bytes           int64 // of a packet
	firstSize, last int64 // of --plot size
}

func newChart() *cobra.Command {
	j := &costJob{}
	cmd := &cobra.Command{
		Use:     "chart [flags] [-k K]",
		Short:   "Draw the costs of the algorithms",
		Long:    chartHelp,
		Example: chartExamples,
		Args:    session.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return j.run(cmd) },
	}
	j.add(cmd)
	return cmd
}

func (j *costJob) run(cmd *cobra.Command) error {
	if err := j.settle(cmd); err != nil {
		return err
	}
	rows, err := j.Rows(cmd.Context())
	if err != nil {
		return err
	}
	c, end := j.chart(rows), filepath.Ext(j.output)
	if end == ".csv" {
		var points bytes.Buffer
		writePoints(&points, c) // a Buffer returns no errors
		return put(cmd, points.Bytes(), j.output)
	}
	picture, err := c.Picture()
	if err != nil {
		return selection.Markf("plot", "--plot %s: every value there is is 0, which has no place on its axis: want a larger K, or β or τ", j.plot)
	}
	return write(cmd, picture, cmp.Or(strings.TrimPrefix(end, "."), "svg"), j.output)
}

func (j *costJob) add(cmd *cobra.Command) {
	f, s := cmd.Flags(), &selection.Selection{}
	f.SortFlags, j.Selection = false, s
	f.StringVar(&j.plot, "plot", "c2", "`WHAT` to draw: "+strings.Join(plots, ", "))
	f.StringVarP(&j.output, "output", "o", "", "`FILE` to write, .svg, .png, .pdf, .tex for LaTeX, or .csv for the points (default: SVG to stdout)")
	f.StringVarP(&j.processors, "processors", "k", "2..64", "`K`, the numbers of processors: a list such as 4,8,16..20")
	f.StringVar(&j.algorithms, "algorithm", "", "only these `NAMES` that volley-lab algorithms lists, with commas")
	s.AddSize(f)
	f.Lookup("size").Usage += "; for --plot size a range (default " + usualSizes + ")"
	s.AddMatrix(f)
	s.AddModel(f, selection.PaperModel)
	s.AddLimits(f)
	j.ports = "1"
	selection.MakeList(f, "ports", &j.ports)
	selection.MakeList(f, "rounds-over", &j.excess)
}

// settle checks the flags.
func (j *costJob) settle(cmd *cobra.Command) (err error) {
	f, s := cmd.Flags(), j.Selection
	s.SetDefaults()
	switch end := filepath.Ext(j.output); {
	case !slices.Contains(plots, j.plot):
		return selection.Markf("plot", "--plot %q: want one of %s", j.plot, strings.Join(plots, ", "))
	case j.output != "" && !slices.Contains(append([]string{"csv"}, draw.Formats...), strings.TrimPrefix(end, ".")):
		return selection.Markf("output", "-o %s: want a name that ends with .svg, .png, .pdf, .tex or .csv", j.output)
	}
	j.Comparison = comparison.Comparison{Selection: s, HasMatrix: f.Changed("matrix"), AllPlans: j.sweeps() || j.trades()}
	if l := &s.Limits; j.trades() && l.Memory == 0 && l.Compute == 0 { // plans, too, that only limits make worth it
		l.Memory, l.Compute = math.MaxInt32, math.MaxInt32
	}
	if j.Processors, err = selection.ParseProcessors(j.processors); err != nil {
		return selection.Markf("processors", "-k %q: %w", j.processors, err)
	}
	if j.Settings, err = comparison.Settings(j.ports, j.excess); err != nil {
		return err
	}
	n := len(j.Processors) * len(j.Settings)
	switch {
	case n > selection.MostNumbers:
		return selection.Markf("processors", "%d values of -k, for %d of -p and --rounds-over: want %d points at most", len(j.Processors), len(j.Settings), selection.MostNumbers)
	case j.AllPlans && n != 1:
		return selection.Markf("plot", "--plot %s: it is for one K, one -p and one --rounds-over: say which", j.plot)
	}
	if j.sweeps() {
		err = j.parseSizes(f.Changed("size"))
	} else {
		j.bytes, err = s.Bytes()
	}
	return cmp.Or(err, j.Prepare(j.algorithms, j.bytes))
}

// writePoints writes the points of a chart as CSV.
func writePoints(w io.Writer, c draw.Chart) error {
	writer := csv.NewWriter(w)
	writer.Write([]string{"series", c.X.Label, c.Y.Label})
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !math.IsNaN(p.Y) {
				writer.Write([]string{s.Name, strconv.FormatFloat(p.X, 'g', -1, 64), strconv.FormatFloat(p.Y, 'g', -1, 64)})
			}
		}
	}
	writer.Flush()
	return writer.Error()
}

// sweeps reports whether times are wanted for many packet sizes.
func (j *costJob) sweeps() bool { return j.plot == "size" }

// trades reports whether the times of all plans are wanted against what they take.
func (j *costJob) trades() bool { return j.plot == "memory" || j.plot == "compute" }

// usualSizes are those of --plot size unless --size says others.
const usualSizes = "1KiB..64MiB"

// parseSizes sets the sizes of --plot size.
func (j *costJob) parseSizes(hasSize bool) error {
	text := usualSizes
	if hasSize {
		text = j.Selection.Size
	}
	first, last, _ := strings.Cut(text, "..")
	var errA, errB error
	j.firstSize, errA = selection.ParseSize(first)
	j.last, errB = selection.ParseSize(last)
	if errA != nil || errB != nil || j.firstSize < 1 || j.last <= j.firstSize || j.last > 1<<50 {
		return selection.Markf("size", "--size %q: with --plot size want a range such as %s, up to 1PiB", text, usualSizes)
	}
	j.bytes = j.firstSize
	return nil
}
