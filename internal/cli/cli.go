// Package cli is the command line: one file for each verb, and what they share.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley"
	"volley/engine/ssh"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/transport"
)

// Main runs the command line and returns the exit code. An interrupt stops a
// running verb, which then leaves nothing half written.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	go func() {
		<-signals
		signal.Stop(signals) // a second one ends the process at once
		cancel(errInterrupted)
	}()
	return run(ctx, args, stdout, stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runSession(ctx, new(session), args, stdout, stderr)
}

// runSession is run in a session that knows its place.
func runSession(ctx context.Context, s *session, args []string, stdout, stderr io.Writer) int {
	logTo(stderr, false) // until the flags are known
	cmd := newCommand(stderr)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	ctx = context.WithValue(ctx, sessionKey{}, s)
	err := cmd.ExecuteContext(ctx)
	if verb, rest, unknown := cmd.Find(args); s.party == nil && !s.alone && err != nil && unknown == nil && verb.Flags().Lookup("comm") != nil {
		s.joinAnyhow(rest) // the others may be waiting
	}
	return s.end(err, func(text string) {
		if text != "" { // a launch has said it
			printable.Fprintf(stderr, "volley: %s\n", text)
		}
	})
}

// end ends a session with an error, which one process of all says, and returns the exit
// code.
func (s *session) end(err error, say func(string)) int {
	mine := ending{Code: exitCode(err)}
	if err != nil {
		mine.Text = message(err)
	}
	if s.party == nil || !s.party.job() {
		switch {
		case s.at != nil:
			s.at.report(mine)
		case err != nil:
			say(mine.Text)
		}
		return mine.Code
	}
	if aborted := new(transport.AbortError); errors.As(err, &aborted) && aborted.Rank != s.party.Rank() || errors.Is(err, ssh.ErrGone) {
		mine.Heard = true
	} else if err != nil && mine.Code != exitWrong && !errors.As(err, new(*pairsError)) { // which all find
		s.party.Abort(err)
	}
	return s.party.part(mine, say)
}

const longHelp = `Volley encodes data where it is: each of K machines ends with a coded file.

No machine collects all data. With the default matrix, any K of the 2K input
and coded files bring the others back. Volley also protects directories, so
that any R of them may be lost.

Begin with
  volley encode -o encoded DIR          a coded file for each file in DIR
  volley decode encoded -o back [FILE]  the inputs, from what is left of both
  volley protect --tolerate 2 DIR...    any 2 of these directories may be lost

Exit codes: 0 done; 1 the run failed; 2 usage or bad input; 3 the result failed
verification; 130 interrupted.`

func newCommand(stderr io.Writer) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:           "volley",
		Short:         "All-to-all encode",
		Long:          longHelp,
		Version:       volley.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown verb %q: see volley --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if s, ok := cmd.Context().Value(sessionKey{}).(*session); ok {
				s.verb = cmd.Name()
				if dry := cmd.Flags().Lookup("dry-run"); dry != nil && dry.Value.String() == "true" {
					s.verb += " --dry-run"
				}
			}
			logTo(stderr, verbose)
		},
	}
	cmd.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "say on stderr what is done")
	cmd.SetFlagErrorFunc(flagError)
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetHelpCommand(newHelp())
	cmd.SetUsageTemplate(usageTemplate(cmd))
	cobra.EnableCommandSorting = false // the usual ones first
	for _, verb := range []*cobra.Command{newEncode(), newDecode(), newProtect(), newVerify(), newRecover(), newStatus(), newTune()} {
		launchable(verb)
		cmd.AddCommand(verb)
	}
	cmd.AddCommand(newRank(), newPlan(), newCheck(), newCost(), newMatrix(), newExplore(), newAlgorithms(), newFields())
	cmd.AddCommand(newTopics()...)
	return cmd
}

// logTo has the log written, with what is done if verbose.
func logTo(w io.Writer, verbose bool) {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})))
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if invalid := new(pflag.InvalidValueError); errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		err = fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), selection.Wanted(flag))
	}
	return usagef("%w: see %s --help", err, cmd.CommandPath())
}

// newHelp is cobra's help verb, except that it refuses an unknown verb.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB or TOPIC]",
		Short: "Explain a verb or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("no help for %q: see volley --help", strings.Join(args, " "))
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}
