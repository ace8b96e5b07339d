// Package cli is the command line: one file for each verb, and what they share.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/internal/ssh"
	"volley/transport"
)

// Main runs the command line and returns the exit code. An interrupt stops a verb, which leaves nothing half written.
func Main(args []string, stdout, stderr io.Writer) int {
	// With it the collector runs first at 32 MiB, and not several times while a run makes its buffers. No page is touched.
	ballast := make([]byte, 16<<20)
	defer runtime.KeepAlive(ballast)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0)) // --cores lowers it
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
	s := newSession()
	s.own = true
	return s.run(ctx, args, stdout, stderr)
}

// run runs the command line, as others may in the same process, and returns the exit code.
func (s *session) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd, out := s.begin(stdout, stderr)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // a shell asks
		completeValues(cmd)
	}
	cmd.SetArgs(append([]string{}, args...)) // cobra takes the process's for nil
	err := cmd.ExecuteContext(ctx)
	verb, rest, unknown := cmd.Find(args)
	if err != nil && s.verb == "" {
		s.scan(verb, rest)
	}
	if err != nil && unknown == nil {
		s.joinAnyhow(verb, func(f *pflag.FlagSet) { f.Parse(rest) })
	}
	return s.finish(out, err)
}

// runSent runs the verb that a launch has sent to this rank, and returns the exit code.
func (s *session) runSent(ctx context.Context, stderr io.Writer) int {
	cmd, out := s.begin(s.at, stderr)
	set := func(f *pflag.FlagSet) (err error) {
		for _, x := range s.at.Flags {
			err = cmp.Or(err, f.Set(x.Name, x.Value))
		}
		return err
	}
	verb, rest, err := cmd.Find(strings.Fields(s.at.Start.Verb))
	if err = cmp.Or(err, NoArguments(verb, rest)); err == nil {
		verb.SetContext(ctx)
		verb.InheritedFlags() // are flags of the verb from now on
		if err = set(verb.Flags()); err != nil {
			err = flagError(verb, err)
		} else {
			err = s.settle(verb)
		}
		if err == nil {
			err = verb.RunE(verb, s.at.Paths)
		}
		if err != nil {
			s.joinAnyhow(verb, func(f *pflag.FlagSet) { set(f) })
		}
	}
	return s.finish(out, err)
}

// begin returns the command line of this session, and what its verbs print to.
func (s *session) begin(stdout, stderr io.Writer) (*cobra.Command, *clearing) {
	s.begun, s.stderr = time.Now(), stderr
	s.logTo(false, false) // until the flags are known
	cmd, out := newCommand(s), &clearing{Writer: stdout, s: s}
	cmd.SetOut(out)
	cmd.SetErr(stderr)
	return cmd, out
}

// finish ends the session by the error of its verb, and returns the exit code.
func (s *session) finish(out *clearing, err error) int {
	if failed := out.failed.Load(); failed != nil && (err == nil || errors.Is(err, *failed)) { // without what the writer was at
		err = *failed
	}
	code := s.conclude(s.end(err))
	s.log.Info("ended", "verb", s.verb, "exit_code", code, "seconds", time.Since(s.begun).Seconds())
	return code
}

// settle settles by the flags of a verb how it logs and prints.
func (s *session) settle(cmd *cobra.Command) error {
	s.verb = cmd.Name()
	if dry := cmd.Flags().Lookup("dry-run"); dry != nil && dry.Value.String() == "true" {
		s.verb += " --dry-run"
	}
	if err := checkFormat("--log-format", s.format, "text", "json"); err != nil {
		return err
	}
	s.json = s.format == "json"
	s.logTo(verbose(cmd), s.json)
	quiet, _ := cmd.Flags().GetBool("quiet")
	if json, _ := cmd.Flags().GetBool("json"); quiet && !json {
		cmd.SetOut(io.Discard)
	}
	if f := cmd.Flags().Lookup(metricsFlag); f != nil {
		if f.Changed && s.verb != cmd.Name() {
			return exit.Usagef("--%s: a dry run has no metrics: leave --dry-run or --%s out", metricsFlag, metricsFlag)
		}
		if err := checkOutputFile("--"+metricsFlag, f.Value.String(), ""); err != nil {
			return err
		}
		s.metrics = f.Value.String()
	}
	return nil
}

// scan takes from arguments that are wrong what they say of the log and of metrics, which are to have the error.
func (s *session) scan(verb *cobra.Command, args []string) {
	f := looseFlags()
	format := f.String("log-format", "", "")
	f.StringVar(&s.metrics, metricsFlag, "", "")
	f.Parse(args)
	if verb.Flags().Lookup(metricsFlag) == nil {
		s.metrics = ""
	}
	s.verb, s.json = verb.Name(), *format == "json"
	s.logTo(false, s.json)
}

// looseFlags returns flags for arguments some of which may be unknown.
func looseFlags() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.Usage = func() {} // --help is none of ours
	return f
}

// conclude writes the metrics, if this process is to, and returns the exit code.
func (s *session) conclude(code int) int {
	if s.metrics == "" || s.party != nil && s.party.job() && !s.leads {
		return code
	}
	if err := s.gauges.Write(s.metrics, s.verb, s.begun, code); err != nil {
		s.say(slog.LevelError, launch.Saying{Text: fmt.Sprintf("--%s %s: not written: %v", metricsFlag, s.metrics, err)})
		return max(code, exit.Failed)
	}
	return code
}

// end ends a session with an error, which one process of all says, and returns the exit code.
func (s *session) end(err error) int {
	host, _ := os.Hostname()
	mine := launch.Ending{Code: exit.Code(err), Host: host, Result: s.came, Values: s.gauges.Values()}
	if err != nil {
		if mine.Text = message(err); s.read.Load() {
			mine.Text = dash.ReplaceAllString(mine.Text, "${1}standard input$2")
		}
	}
	if s.party != nil {
		mine.Set = s.party.set
	}
	if s.party == nil || !s.party.job() {
		switch {
		case s.at != nil:
			s.at.Report(mine)
		case err != nil:
			s.say(slog.LevelError, launch.Saying{Text: mine.Text})
		}
		return mine.Code
	}
	if aborted := new(transport.AbortError); errors.As(err, &aborted) && aborted.Rank != s.party.Rank() || errors.Is(err, ssh.ErrGone) {
		mine.Heard = true
	} else if err != nil && mine.Code != exit.Wrong && !errors.As(err, new(*pairsError)) { // which all find
		s.party.Abort(err)
	}
	return s.party.part(mine, s)
}

// hear says what went wrong in a run of which this is rank 0, and keeps what others note of their sets.
func (s *session) hear(all []*launch.Ending) {
	s.leads = true
	for _, x := range launch.Sayings(all) {
		s.say(slog.LevelError, x)
	}
	for r, x := range all {
		if r > 0 && x != nil {
			s.gauges.Note(x.Values)
		}
	}
}

// Command returns the command line, for its man pages.
func Command() *cobra.Command { return newCommand(newSession()) }

func newCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        name(),
		Short:                      "All-to-all encode",
		Version:                    volley.Version,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
					return exit.Usagef("unknown verb %q: did you mean %s? See %s --help", args[0], strings.Join(like, " or "), name())
				}
				return exit.Usagef("unknown verb %q: see %s --help", args[0], name())
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.settle(cmd) },
	}
	cmd.PersistentFlags().BoolP("verbose", "v", false, "say on stderr what is done")
	cmd.PersistentFlags().StringVar(&s.format, "log-format", "text", "`FORMAT` of the log: text or json")
	cmd.SetFlagErrorFunc(flagError)
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetHelpCommand(newHelp())
	cmd.SetUsageTemplate(usageTemplate(cmd))
	addVerbs(cmd, "Directories of nodes", newProtect(s), newRecover(s), newVerify(s), newStatus(s),
		newResize(s), newUnprotect(s), newSnapshots(s), newGroup(s))
	addVerbs(cmd, "Files", newEncode(s), newDecode(s))
	addVerbs(cmd, "Schedules", newPlan(s), newCheck(s), newCost(s), newMatrix(s), newAlgorithms(s), newFields(s))
	if extension == nil {
		addVerbs(cmd, "Schedules", newExplore(s))
	}
	addVerbs(cmd, "More", newTune(s), newVersion())
	cmd.SetHelpCommandGroupID("More")
	cmd.AddCommand(newRank(s), newBuffers(s))
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

// say prints an error or a warning, or logs it where the log is JSON, with its rank and host: by default this process's.
func (s *session) say(level slog.Level, x launch.Saying) {
	if x.Text == "" { // a launch has said it
		return
	}
	s.meter.clear()
	if !s.json {
		printable.Fprintf(s.stderr, "%s: %v\n", name(), x)
		return
	}
	if x.Host == "" {
		x.Host, _ = os.Hostname()
	}
	at := slog.Int("rank", s.rank())
	switch len(x.Ranks) {
	case 0:
	case 1:
		at = slog.Int("rank", x.Ranks[0])
	default:
		at = slog.Any("ranks", x.Ranks)
	}
	s.log.Log(context.Background(), level, x.Text, "verb", s.verb, "host", x.Host, at)
}

func (s *session) rank() int {
	if s.party == nil {
		return 0
	}
	return s.party.Rank()
}

// pass has the log get a line of a host, as it is where it is a record.
func (s *session) pass(host, line string) {
	if text := printable.Text(line); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		printable.Fprintf(s.stderr, "%s\n", text)
	} else {
		s.log.Warn(line, "host", host)
	}
}

func flagError(cmd *cobra.Command, err error) error {
	if invalid := new(pflag.InvalidValueError); errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		if err = fmt.Errorf("--%s: %w", flag.Name, invalid.Unwrap()); selection.Wanted(flag) != "" {
			err = fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), selection.Wanted(flag))
		}
	}
	return exit.Usagef("%w: see %s --help", err, cmd.CommandPath())
}

// newHelp is cobra's help verb, except that it refuses an unknown verb.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB or TOPIC]",
		Short: "Explain a verb or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return exit.Usagef("no help for %q: see %s --help", strings.Join(args, " "), name())
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
			verb, _, _ := cmd.Root().Find(args)
			for _, x := range verb.Commands() {
				if !x.Hidden {
					list = append(list, cobra.CompletionWithDesc(x.Name(), x.Short))
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
