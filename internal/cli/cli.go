// Package cli is the command line: the tree of verbs, and their help.
package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley"
	"volley/internal/cli/groups"
	"volley/internal/cli/ranks"
	"volley/internal/cli/schedules"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/selection"
)

// Main runs the command line and returns the exit code. An interrupt stops a verb, which leaves nothing half written.
func Main(args []string, stdout, stderr io.Writer) int {
	// With it the collector runs first at 32 MiB, and not several times while a run makes its buffers. No page is touched.
	ballast := make([]byte, 16<<20)
	defer runtime.KeepAlive(ballast)
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
		cancel(exit.ErrInterrupted)
	}()
	s := session.New()
	s.OwnsProcess = true
	return execute(ctx, s, args, stdout, stderr)
}

// execute runs the command line, as others may in the same process, and returns the exit code.
func execute(ctx context.Context, s *session.Invocation, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand(s)
	s.Begin(cmd, stdout, stderr)
	cmd.SetArgs(append([]string{}, args...)) // cobra takes the process's for nil
	err := cmd.ExecuteContext(ctx)
	verb, rest, unknown := cmd.Find(args)
	if err != nil && s.Verb == "" {
		s.Scan(verb, rest)
	}
	if err != nil && unknown == nil {
		ranks.JoinAnyhow(s, verb, groups.Nodes(s), func(f *pflag.FlagSet) { f.Parse(rest) })
	}
	return s.Finish(err)
}

// runSent runs the verb that a launch has sent to this rank.
func runSent(ctx context.Context, s *session.Invocation, stderr io.Writer) {
	cmd := newCommand(s)
	s.Begin(cmd, s.LaunchRank, stderr)
	set := func(f *pflag.FlagSet) (err error) {
		for _, x := range s.LaunchRank.Flags {
			err = cmp.Or(err, f.Set(x.Name, x.Value))
		}
		return err
	}
	verb, rest, err := cmd.Find(strings.Fields(s.LaunchRank.Start.Verb))
	if err = cmp.Or(err, session.NoArguments(verb, rest)); err == nil {
		verb.SetContext(ctx)
		verb.InheritedFlags() // are flags of the verb from now on
		if err = set(verb.Flags()); err != nil {
			err = session.FlagError(verb, err)
		} else {
			err = s.Settle(verb)
		}
		if err == nil {
			err = verb.RunE(verb, s.LaunchRank.Paths)
		}
		if err != nil {
			ranks.JoinAnyhow(s, verb, groups.Nodes(s), func(f *pflag.FlagSet) { set(f) })
		}
	}
	s.Finish(err)
}

// Command returns the command line, for its man pages.
func Command() *cobra.Command { return newCommand(session.New()) }

func newCommand(s *session.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        session.CommandName,
		Short:                      "All-to-all encode",
		Version:                    volley.Version,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if suggestions := cmd.SuggestionsFor(args[0]); len(suggestions) > 0 {
					return exit.Usagef("unknown verb %q: did you mean %s? See %s --help", args[0], strings.Join(suggestions, " or "), session.CommandName)
				}
				return exit.Usagef("unknown verb %q: see %s --help", args[0], session.CommandName)
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.Settle(cmd) },
	}
	cmd.PersistentFlags().BoolP("verbose", "v", false, "say on stderr what is done")
	s.Format = "text"
	cmd.PersistentFlags().Var(selection.Word(&s.Format, "text", "json"), "log-format", "`FORMAT` of the log: text or json")
	cmd.SetFlagErrorFunc(session.FlagError)
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetHelpFunc(showHelp)
	addVerbs(cmd, "Directories of nodes", groups.Verbs(s)...)
	addVerbs(cmd, "Files", schedules.Files(s)...)
	addVerbs(cmd, "Schedules", schedules.Verbs(s)...)
	addVerbs(cmd, "More", newVersion())
	cmd.SetHelpCommandGroupID("More")
	cmd.InitDefaultHelpCmd()
	help, _, _ := cmd.Find([]string{"help"})
	help.Use, help.Short, help.Long = "help [VERB or TOPIC]", "Explain a verb or a topic", ""
	help.Args = func(_ *cobra.Command, args []string) error { // which cobra does not refuse
		if _, rest, err := cmd.Find(args); err != nil || len(rest) > 0 {
			return exit.Usagef("no help for %q: see %s --help", strings.Join(args, " "), session.CommandName)
		}
		return nil
	}
	cmd.AddCommand(newRank(s), newServe(s))
	cmd.AddCommand(newTopics()...)
	document(cmd)
	if extension != nil {
		cmd.Long = extension.Help
		addVerbs(cmd, "Schedules", extension.Verbs()...)
	}
	return cmd
}

// addVerbs adds verbs below a heading of --help.
func addVerbs(cmd *cobra.Command, heading string, verbs ...*cobra.Command) {
	if !cmd.ContainsGroup(heading) {
		cmd.AddGroup(&cobra.Group{ID: heading, Title: heading + ":"})
	}
	for _, verb := range verbs {
		verb.GroupID = heading
		cmd.AddCommand(verb)
	}
}
