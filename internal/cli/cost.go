package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/comparison"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/report"
)

type costOptions struct {
	choice
	processors string
	portList   string
	overList   string
	mean, load bool
	noiseOptions
	format string
	plot   string
	output string
}

const costHelp = `Compare what the algorithms cost, for many K.

The table has rounds (C1), packets (C2) and the time by the cost model of each
algorithm, beside the lower bounds. Without --matrix it has the algorithms for
any matrix. More, with the charts and the simulation: volley help costs`

// costFormats are those of tables, and those of charts.
var (
	chartFormats = []string{"svg", "png"}
	costFormats  = slices.Concat(report.Formats, chartFormats)
)

func newCost() *cobra.Command {
	o := &costOptions{}
	cmd := &cobra.Command{
		Use:   "cost [flags] [-k K]",
		Short: "Compare the costs of the algorithms, for many K",
		Long:  costHelp,
		Example: `  volley cost -k 2..64
  volley cost -k 8,16,32,64 -p 2 --size 64KiB --format csv
  volley cost --field 257 --matrix lagrange -k 16,24,32,48,64,96,128
  volley cost -k 2..2048 -p 1,2,4,8 --algorithm universal --mean
  volley cost -k 16,64 --size 64KiB --jitter 0.2 --stragglers 0.05x4 --repeat 20
  volley cost -k 2..256 --plot ratio --format svg > ratio.svg
  volley cost --matrix cauchy -k 64 --plot size --format svg > crossings.svg`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCost(cmd, o) },
	}
	o.addMatrix(cmd)
	f := cmd.Flags()
	f.Lookup("matrix").DefValue = "any matrix"
	f.StringVarP(&o.processors, "processors", "k", "2..64", "`K`, the numbers of processors: a list such as 4,8,16..20")
	f.StringVar(&o.Algorithm, "algorithm", "", "only these `NAMES` that volley algorithms lists, with commas")
	o.addModel(cmd, selection.PaperModel)
	o.addLimits(cmd)
	o.portList = "1"
	makeList(f, "ports", &o.portList)
	makeList(f, "rounds-over", &o.overList)
	o.AddSize(f)
	f.Lookup("size").Usage += "; for --plot size a range (default " + usualSizes + ")"
	f.BoolVar(&o.mean, "mean", false, "print only the mean of C2 / lower bound over all K")
	f.BoolVar(&o.load, "load", false, "print what processors send, receive, hold and compute")
	o.addNoise(cmd)
	f.StringVar(&o.format, "format", "text", "`FORMAT`: "+strings.Join(costFormats, ", "))
	f.StringVar(&o.plot, "plot", "c2", "`WHAT` svg and png draw: "+strings.Join(plots, ", "))
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write instead of stdout")
	return cmd
}

// makeList makes the flag of a number that of a list.
func makeList(f *pflag.FlagSet, name string, list *string) {
	var text pflag.FlagSet
	text.StringVar(list, name, *list, "")
	one := f.Lookup(name)
	one.Value, one.DefValue = text.Lookup(name).Value, *list
	one.Usage += "; or a list as for -k"
}

// A costJob is a comparison whose arguments are all right.
type costJob struct {
	*costOptions
	comparison.Comparison
	bytes int64     // of a packet
	sizes sizeRange // of --plot size
}

func runCost(cmd *cobra.Command, o *costOptions) error {
	job, err := o.prepare(cmd)
	if err != nil {
		return err
	}
	rows, err := job.Rows(cmd.Context())
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return job.write(w, rows) }
	if o.output == "" {
		return write(cmd.OutOrStdout())
	}
	return writeFile("-o", o.output, write)
}

// prepare checks all arguments.
func (o *costOptions) prepare(cmd *cobra.Command) (*costJob, error) {
	job := &costJob{costOptions: o, Comparison: comparison.Comparison{
		Selection: &o.Selection, Given: cmd.Flags().Changed("matrix"), Seed: o.seed, Runs: o.repeat, Load: o.load,
		AllPlans: o.sweeps() || o.trades(), Frugal: o.trades(),
	}}
	if err := o.checkForm(cmd.Flags().Changed); err != nil {
		return nil, err
	}
	var err error
	if job.Processors, err = selection.ParseProcessors(o.processors); err != nil {
		return nil, usagef("-k %q: %w", o.processors, err)
	}
	if job.Settings, err = comparison.Settings(o.portList, o.overList); err != nil {
		return nil, err
	}
	if len(job.Settings)*len(job.Processors) > selection.MostNumbers {
		return nil, usagef("%d values of -k, for %d of -p and --rounds-over: want %d rows at most", len(job.Processors), len(job.Settings), selection.MostNumbers)
	}
	if job.Noise, err = o.noise(cmd.Flags().Changed); err != nil {
		return nil, err
	}
	if err := job.parseSize(cmd.Flags().Changed("size")); err != nil {
		return nil, err
	}
	return job, job.Prepare(o.Algorithm, job.bytes)
}

// checkForm checks what to print, and that flags go together.
func (o *costOptions) checkForm(changed func(string) bool) error {
	if err := checkFormat(o.format, costFormats); err != nil {
		return err
	}
	chart := slices.Contains(chartFormats, o.format)
	noisy := changed("jitter") || changed("stragglers")
	switch {
	case !slices.Contains(plots, o.plot):
		return usagef("--plot %q: want one of %s", o.plot, strings.Join(plots, ", "))
	case changed("plot") && !chart:
		return usagef("--plot %s: say how to draw it, with --format svg or --format png", o.plot)
	case chart && (o.mean || o.load):
		return usagef("--format %s: --mean and --load print tables: leave them out, or take text, csv or json", o.format)
	case o.mean && o.load:
		return usagef("--mean and --load print different tables: leave one out")
	case noisy && o.ByModel == selection.NetworkModel:
		return usagef("--jitter and --stragglers simulate the links of --model paper: leave them out, or --model network")
	case noisy && (o.mean || o.load || chart && o.plot != "time"):
		return usagef("--jitter and --stragglers change times only: leave them out, or --mean, --load and plots but that of time")
	case !noisy && (changed("seed") || changed("repeat")):
		return usagef("--seed and --repeat are for simulated runs: say what differs in them with --jitter or --stragglers")
	}
	return checkOutputFile("-o", o.output, ", or leave -o out to print")
}

// parseSize sets the size of packets or, where times are wanted for many, their range.
func (j *costJob) parseSize(changed bool) (err error) {
	if (j.sweeps() || j.trades()) && len(j.Processors)*len(j.Settings) != 1 {
		return usagef("--plot %s: it is for one K, one -p and one --rounds-over: say which", j.plot)
	}
	if j.sweeps() {
		j.sizes, err = parseSizes(j.Size, changed)
		j.bytes = j.sizes.from
	} else {
		j.bytes, err = j.Bytes()
	}
	return err
}

// sweeps reports whether times are wanted for many packet sizes.
func (o *costOptions) sweeps() bool {
	return slices.Contains(chartFormats, o.format) && o.plot == "size"
}

// trades reports whether the times of all plans are wanted against what they take.
func (o *costOptions) trades() bool {
	return slices.Contains(chartFormats, o.format) && (o.plot == "memory" || o.plot == "compute")
}

// write writes what was asked for.
func (j *costJob) write(w io.Writer, rows []comparison.Row) error {
	switch {
	case slices.Contains(chartFormats, j.format):
		return j.draw(w, rows)
	case j.load:
		return j.writeLoad(w, rows)
	case j.mean:
		return j.writeMeans(w, rows)
	}
	if err := report.Write(w, j.format, j.columns(), rows); err != nil {
		return err
	}
	if j.format != "text" || len(j.Processors) < 2 || j.Given {
		return nil
	}
	if _, err := printable.Fprintf(w, "\n"); err != nil {
		return err
	}
	return j.writeMeans(w, rows)
}
