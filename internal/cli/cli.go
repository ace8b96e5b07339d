// Package cli is the command line: one file for each verb, and what they share.
package cli

import (
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
		cancel(errInterrupted)
	}()
	s := newSession()
	s.own = true
	return s.run(ctx, args, stdout, stderr)
}

// run runs the command line, as others may in the same process, and returns the exit code.
func (s *session) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s.begun, s.stderr = time.Now(), stderr
	s.logTo(false, false) // until the flags are known
	cmd := newCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // a shell asks
		completeValues(cmd)
	}
	cmd.SetArgs(append([]string{}, args...)) // cobra takes the process's for nil
	out := &clearing{Writer: stdout, s: s}
	cmd.SetOut(out)
	cmd.SetErr(stderr)
	ctx = context.WithValue(ctx, sessionKey{}, s)
	err := cmd.ExecuteContext(ctx)
	if failed := out.failed.Load(); failed != nil && (err == nil || errors.Is(err, *failed)) { // without what the writer was at
		err = *failed
	}
	verb, rest, unknown := cmd.Find(args)
	if err != nil && s.verb == "" {
		s.scan(verb, rest)
	}
	if s.party == nil && !s.alone && err != nil && unknown == nil && verb.Flags().Lookup("comm") != nil {
		s.joinAnyhow(rest) // the others may be waiting
	}
	code := s.conclude(s.end(err))
	s.log.Info("ended", "verb", s.verb, "exit_code", code, "seconds", time.Since(s.begun).Seconds())
	return code
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
	if err := s.writeMetrics(code); err != nil {
		s.say(slog.LevelError, saying{Text: fmt.Sprintf("--%s %s: not written: %v", metricsFlag, s.metrics, err)})
		return max(code, exitFailed)
	}
	return code
}

// end ends a session with an error, which one process of all says, and returns the exit code.
func (s *session) end(err error) int {
	host, _ := os.Hostname()
	mine := ending{Code: exitCode(err), Host: host, Result: s.came, Values: s.values}
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
			s.at.report(mine)
		case err != nil:
			s.say(slog.LevelError, saying{Text: mine.Text})
		}
		return mine.Code
	}
	if aborted := new(transport.AbortError); errors.As(err, &aborted) && aborted.Rank != s.party.Rank() || errors.Is(err, ssh.ErrGone) {
		mine.Heard = true
	} else if err != nil && mine.Code != exitWrong && !errors.As(err, new(*pairsError)) { // which all find
		s.party.Abort(err)
	}
	return s.party.part(mine, s)
}

// hear says what went wrong in a run of which this is rank 0, and keeps what others note of their sets.
func (s *session) hear(all []*ending) {
	s.leads = true
	for _, x := range sayings(all) {
		s.say(slog.LevelError, x)
	}
	for r, x := range all {
		if r > 0 && x != nil {
			s.note(x.Values)
		}
	}
}

// Command returns the command line, for its man pages.
func Command() *cobra.Command { return newCommand() }

func newCommand() *cobra.Command {
	var verbose bool
	var format string
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
					return usagef("unknown verb %q: did you mean %s? See %s --help", args[0], strings.Join(like, " or "), name())
				}
				return usagef("unknown verb %q: see %s --help", args[0], name())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			s := sessionOf(cmd.Context())
			s.verb = cmd.Name()
			if dry := cmd.Flags().Lookup("dry-run"); dry != nil && dry.Value.String() == "true" {
				s.verb += " --dry-run"
			}
			if err := checkFormat("--log-format", format, "text", "json"); err != nil {
				return err
			}
			s.json = format == "json"
			s.logTo(verbose, s.json)
			quiet, _ := cmd.Flags().GetBool("quiet")
			if json, _ := cmd.Flags().GetBool("json"); quiet && !json {
				cmd.SetOut(io.Discard)
			}
			if f := cmd.Flags().Lookup(metricsFlag); f != nil {
				if f.Changed && s.verb != cmd.Name() {
					return usagef("--%s: a dry run has no metrics: leave --dry-run or --%s out", metricsFlag, metricsFlag)
				}
				if err := checkOutputFile("--"+metricsFlag, f.Value.String(), ""); err != nil {
					return err
				}
				s.metrics = f.Value.String()
			}
			return nil
		},
	}
	cmd.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "say on stderr what is done")
	cmd.PersistentFlags().StringVar(&format, "log-format", "text", "`FORMAT` of the log: text or json")
	cmd.SetFlagErrorFunc(flagError)
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetHelpCommand(newHelp())
	cmd.SetUsageTemplate(usageTemplate(cmd))
	addVerbs(cmd, "Directories of nodes", launched(newProtect()), launched(newRecover()), launched(newVerify()), launched(newStatus()),
		launched(newResize()), launched(newUnprotect()), launched(newSnapshots()), newGroup())
	addVerbs(cmd, "Files", launched(newEncode()), launched(newDecode()))
	addVerbs(cmd, "Schedules", stoppable(newPlan()), stoppable(newCheck()), stoppable(newCost()), stoppable(newMatrix()), newAlgorithms(), newFields())
	if extension == nil {
		addVerbs(cmd, "Schedules", newExplore())
	}
	addVerbs(cmd, "More", launched(newTune()), newVersion())
	cmd.SetHelpCommandGroupID("More")
	cmd.AddCommand(newRank(), newBuffers())
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

// launched returns a verb that may run at the hosts that its arguments name.
func launched(verb *cobra.Command) *cobra.Command {
	launchable(verb)
	if verb.Name() == resizeVerb {
		resizing(verb)
	}
	if verb.Flags().Lookup("key") != nil || verb.Name() == tuneVerb {
		grouped(verb)
	}
	return verb
}

// say prints an error or a warning, or logs it where the log is JSON, with its rank and host: by default this process's.
func (s *session) say(level slog.Level, x saying) {
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
				return usagef("no help for %q: see %s --help", strings.Join(args, " "), name())
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
