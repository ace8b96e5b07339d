package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"volley/coded"
	"volley/field"
)

type encodeOptions struct {
	choice
	runOptions
	csv     bool
	symbols bool
}

const encodeHelp = `Encode the packets of K processors, one input file each, into a coded file each.

Each PACKET is a file, or a directory, which stands for the regular files in it
in name order, names with a leading dot left out. With -k a single name with
{rank} in it, such as 'ckpt.{rank}', stands for K files. Shorter packets are
padded with zeros for coding.

With --sinks R only R processors get a coded file: the first ones or, with
--separate, R more that have no PACKET.

DIR gets a file for each processor that obtains one, coded.00 to coded.15 for 16, and
manifest.json, which says what they are, and a copy of that. A run that fails or
is killed leaves DIR as it was, or with the whole new result. Two runs cannot
write DIR at once. Only who can read every PACKET can read these files. With --csv
the one input is a text file of symbols in decimal, a row for each processor, and the
output is coded.csv.

The processors run in this process or, with --comm mpi, one in each process that mpirun
starts. Then each process names its own packets: by {rank}, which may be in the name of a
directory with one packet in it, or by files or a directory that only it sees. Files
that all processes see may be named by all as well.`

func newEncode() *cobra.Command {
	o := &encodeOptions{}
	cmd := &cobra.Command{
		Use:   "encode [flags] -o DIR PACKET...",
		Short: "Encode files: one in and one out for each processor",
		Long:  encodeHelp,
		Example: `  volley encode -o coded examples/packets
  volley encode --field 2^16 --matrix random:1 -p 2 -o coded2 -k 8 'examples/packets/node-0{rank}.ckpt'`,
		RunE: func(cmd *cobra.Command, args []string) error { return runEncode(cmd, o, args) },
	}
	o.addMatrix(cmd)
	o.AddProcessors(cmd.Flags())
	o.addPlan(cmd)
	o.addRun(cmd, "directory for the coded files; made if need be", "replace the result that DIR holds")
	f := cmd.Flags()
	f.Lookup("processors").Usage = "number of processors (default: of packets)"
	f.BoolVar(&o.csv, "csv", false, "read and write symbols as text, a row for each processor")
	f.BoolVar(&o.symbols, "symbols", false, "the bytes of the files are symbols already; do not pack them")
	return cmd
}

func runEncode(cmd *cobra.Command, o *encodeOptions, args []string) error {
	e, err := o.encoding(cmd, args)
	if err != nil {
		return err
	}
	defer o.bar.stop()
	report, err := coded.Encode(cmd.Context(), o.party.Transport, e)
	if err != nil {
		return o.advise(err)
	}
	o.bar.stop()
	return o.print(cmd.OutOrStdout(), report, fmt.Sprintf("coded packets in %s", o.output))
}

// encoding returns what the flags say.
func (o *encodeOptions) encoding(cmd *cobra.Command, args []string) (e coded.Encoding, err error) {
	if o.csv && o.symbols {
		return e, usagef("--csv and --symbols: a text file holds symbols anyway; leave --symbols out")
	}
	options, err := o.prepare(cmd, &o.choice)
	if err != nil {
		return e, err
	}
	e = coded.Encoding{
		Options: options, Files: args, Job: o.party.job(),
		Processors: o.Processors, PerRank: o.perRank, Sinks: o.Sinks, Separate: o.Separate, Symbols: o.symbols,
	}
	if e.Field, err = field.Parse(o.Field); err != nil {
		return e, usage(err)
	}
	if e.Matrix, err = o.Spec(); err != nil {
		return e, err
	}
	if o.csv && len(args) > 0 {
		if len(args) > 1 {
			return e, usagef("--csv reads one file, got %d", len(args))
		}
		e.Text = args[0]
	}
	return e, nil
}
