package schedules

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"volley/internal/cli/session"
	"volley/internal/comparison"
	"volley/internal/exit"
	"volley/internal/report"
	"volley/internal/selection"
)

type costOptions struct {
	selectionFlags
	session.Output
	processors string
	portList   string
	overList   string
}

func newCost(s *session.Session) *cobra.Command {
	o := &costOptions{Output: session.Output{Session: s}}
	cmd := &cobra.Command{
		Use:   "cost [flags] [-k K]",
		Short: "Compare the costs of the algorithms, for many K",
		Args:  session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.Stoppable(cmd.Context(), func() error { return runCost(cmd, o) })
		},
	}
	o.addMatrix(cmd, s)
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
	o.Output.Add(f, report.Formats...)
	o.Pictures = "volley-lab chart -o FILE, with the same flags"
	return cmd
}

// A costJob is a comparison whose arguments are all right.
type costJob struct {
	*costOptions
	comparison.Comparison
}

func runCost(cmd *cobra.Command, o *costOptions) error {
	o.SetDefaults()
	job, err := o.prepare(cmd)
	if err != nil {
		return err
	}
	rows, err := job.Rows(cmd.Context())
	if err != nil {
		return err
	}
	return o.Write(cmd, func(w io.Writer) error { return report.Write(w, o.Format, job.columns(), rows) })
}

// prepare checks all arguments.
func (o *costOptions) prepare(cmd *cobra.Command) (*costJob, error) {
	job := &costJob{costOptions: o, Comparison: comparison.Comparison{
		Selection: &o.Selection, Given: cmd.Flags().Changed("matrix"),
	}}
	err := o.Settle(cmd.Flags())
	if err != nil {
		return nil, err
	}
	if job.Processors, err = selection.ParseProcessors(o.processors); err != nil {
		return nil, exit.Usagef("-k %q: %w", o.processors, err)
	}
	if spec, err := o.Spec(); err == nil && len(job.Processors) > 1 && slices.Contains(spec.Files(), session.Standard) {
		return nil, exit.Usagef("-: standard input can be read once, and -k has %d numbers: name a file, or one number", len(job.Processors))
	}
	if job.Settings, err = comparison.Settings(o.portList, o.overList); err != nil {
		return nil, err
	}
	if len(job.Settings)*len(job.Processors) > selection.MostNumbers {
		return nil, exit.Usagef("%d values of -k, for %d of -p and --rounds-over: want %d rows at most", len(job.Processors), len(job.Settings), selection.MostNumbers)
	}
	bytes, err := o.Bytes()
	if err != nil {
		return nil, err
	}
	return job, job.Prepare(o.Algorithm, bytes)
}
