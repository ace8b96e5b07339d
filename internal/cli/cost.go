package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

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
	mean       bool
	format     string
	output     string
}

const costHelp = `Compare what the algorithms cost, for many K.

The table has rounds (C1), packets (C2) and the time by the cost model of each
algorithm, beside the lower bounds. Without --matrix it has the algorithms for
any matrix. More: volley help costs`

func newCost() *cobra.Command {
	o := &costOptions{}
	cmd := &cobra.Command{
		Use:   "cost [flags] [-k K]",
		Short: "Compare the costs of the algorithms, for many K",
		Long:  costHelp,
		Example: `  volley cost -k 2..64
  volley cost -k 8,16,32,64 -p 2 --size 64KiB --format csv
  volley cost --field 257 --matrix lagrange -k 16,24,32,48,64,96,128
  volley cost -k 2..2048 -p 1,2,4,8 --algorithm universal --mean`,
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
	selection.MakeList(f, "ports", &o.portList)
	selection.MakeList(f, "rounds-over", &o.overList)
	o.AddSize(f)
	f.BoolVar(&o.mean, "mean", false, "print only the mean of C2 / lower bound over all K")
	f.StringVar(&o.format, "format", "text", "`FORMAT`: "+strings.Join(report.Formats, ", "))
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write instead of stdout")
	return cmd
}

// A costJob is a comparison whose arguments are all right.
type costJob struct {
	*costOptions
	comparison.Comparison
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
		Selection: &o.Selection, Given: cmd.Flags().Changed("matrix"),
	}}
	if err := o.checkForm(); err != nil {
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
	bytes, err := o.Bytes()
	if err != nil {
		return nil, err
	}
	return job, job.Prepare(o.Algorithm, bytes)
}

// checkForm checks how to print, and where.
func (o *costOptions) checkForm() error {
	if err := checkFormat("--format", o.format, report.Formats...); err != nil {
		return err
	}
	return checkOutputFile("-o", o.output, ", or leave -o out to print")
}

// write writes what was asked for.
func (j *costJob) write(w io.Writer, rows []comparison.Row) error {
	if j.mean {
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
