// Package session is a run of the command line: what it finds around it, what its verbs print, log and write, and how
// it ends.
package session

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/exit"
	"volley/internal/gauges"
	"volley/internal/launch"
	"volley/internal/printable"
)

// The surroundings are what a session finds around it.
type surroundings struct {
	OwnsProcess bool // the process has no other session, so that this one may change it: its cores, priority and signals
	Stdin       io.Reader
	Environ     []string // as os.Environ has it, also for what the session starts
	Program     string   // of volley, for processes and for hosts that have none; "": that of this process
	Limits      timeLimits
}

// A timeLimits says how long things may take.
type timeLimits struct {
	End      time.Duration // of a rank, from the end of its run to that of its process
	Ending   time.Duration // until a process has heard how others have ended
	Progress time.Duration // between what a rank tells its launch
	redraw   time.Duration // of the line of progress on a terminal
}

// An Invocation is a run of the command line. The verb that joins others leaves the party there, and errors come out by it.
type Invocation struct {
	surroundings
	Verb       string // what this process does
	Party      *Party
	Stays      bool         // the party does, for the next session, where all ranks end well
	Alone      bool         // the others did not come
	LaunchRank *launch.Rank // of a launch; nil: there is none
	leads      bool         // it has heard how all processes ended

	read   atomic.Bool // stdin is, or is being
	saying sync.Mutex  // is held while a line of a host is printed
	stdout *clearing   // stdout
	stderr io.Writer
	Log    *slog.Logger
	meter  *meter // nil: there is none

	begun   time.Time
	JSON    bool   // the log is, and so are errors
	Format  string // of the log
	Metrics string // the file; "": none
	Gauges  gauges.Gauges
}

// New returns a session that finds what this process does.
func New() *Invocation {
	limits := timeLimits{End: 15 * time.Second, Ending: 3 * time.Second, Progress: 200 * time.Millisecond, redraw: 100 * time.Millisecond}
	return &Invocation{surroundings: surroundings{Stdin: os.Stdin, Environ: os.Environ(), Limits: limits}}
}

// RankOf returns the session of a rank of a launch in this one.
func (s *Invocation) RankOf(r *launch.Rank) *Invocation {
	return &Invocation{surroundings: s.surroundings, LaunchRank: r}
}

// Next returns the session that has the party of this one.
func (s *Invocation) Next() *Invocation {
	return &Invocation{surroundings: s.surroundings, Party: s.Party, Stays: true}
}

// Getenv is [os.Getenv].
func (s *Invocation) Getenv(name string) string {
	return launch.Getenv(s.Environ, name)
}

// Self returns the file of this program.
func (s *Invocation) Self() (string, error) {
	if s.Program != "" {
		return s.Program, nil
	}
	return os.Executable()
}

// LogTo has the log written, with what is done if verbose.
func (s *Invocation) LogTo(verbose, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	if verbose {
		options.Level = slog.LevelDebug
	}
	var h slog.Handler = slog.NewTextHandler(s.stderr, options)
	if json {
		h = slog.NewJSONHandler(s.stderr, options)
	}
	if s.Log = slog.New(h); s.OwnsProcess {
		slog.SetDefault(s.Log) // packages of others may use it
	}
	return s.Log
}

// Begin begins the session with a command line, and has its verbs print there.
func (s *Invocation) Begin(cmd *cobra.Command, stdout, stderr io.Writer) {
	s.begun, s.stderr, s.stdout = time.Now(), stderr, &clearing{Writer: stdout, s: s}
	s.LogTo(false, false) // until the flags are known
	cmd.SetOut(s.stdout)
	cmd.SetErr(stderr)
}

// Settle settles by the flags of a verb how it logs and prints.
func (s *Invocation) Settle(cmd *cobra.Command) error {
	s.Verb = cmd.Name()
	if dry := cmd.Flags().Lookup("dry-run"); dry != nil && dry.Value.String() == "true" {
		s.Verb += " --dry-run"
	}
	s.JSON = s.Format == "json"
	s.LogTo(Verbose(cmd), s.JSON)
	quiet, _ := cmd.Flags().GetBool("quiet")
	if json, _ := cmd.Flags().GetBool("json"); quiet && !json {
		cmd.SetOut(io.Discard)
	}
	if f := cmd.Flags().Lookup("metrics"); f != nil {
		if f.Changed && s.Verb != cmd.Name() {
			return exit.Usagef("--metrics: a dry run has no metrics: leave --dry-run or --metrics out")
		}
		if err := checkMetrics(f.Value.String()); err != nil {
			return err
		}
		s.Metrics = f.Value.String()
	}
	return nil
}

// Scan takes from arguments that are wrong what they say of the log and of metrics, which are to have the error.
func (s *Invocation) Scan(verb *cobra.Command, args []string) {
	f := LooseFlags()
	format := f.String("log-format", "", "")
	f.StringVar(&s.Metrics, "metrics", "", "")
	f.Parse(args)
	if verb.Flags().Lookup("metrics") == nil {
		s.Metrics = ""
	}
	s.Verb, s.JSON = verb.Name(), *format == "json"
	s.LogTo(false, s.JSON)
}

// LooseFlags returns flags for arguments some of which may be unknown.
func LooseFlags() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.Usage = func() {} // --help is none of ours
	return f
}

// Say prints an error or a warning, or logs it where the log is JSON, with its rank and host: by default this process's.
func (s *Invocation) Say(level slog.Level, x launch.Saying) {
	if x.Text == "" { // a launch has said it
		return
	}
	s.meter.clear()
	if !s.JSON {
		printable.Fprintf(s.stderr, "%s: %v\n", CommandName, x)
		return
	}
	if x.Host == "" {
		x.Host, _ = os.Hostname()
	}
	attribute := slog.Int("rank", s.rank())
	switch len(x.Ranks) {
	case 0:
	case 1:
		attribute = slog.Int("rank", x.Ranks[0])
	default:
		attribute = slog.Any("ranks", x.Ranks)
	}
	s.Log.Log(context.Background(), level, x.Text, "verb", s.Verb, "host", x.Host, attribute)
}

func (s *Invocation) rank() int {
	if s.Party == nil {
		return 0
	}
	return s.Party.Rank()
}

// Fails says what failed.
func (s *Invocation) Fails(x launch.Saying) { s.Say(slog.LevelError, x) }

// Hears prints what a host has on its stderr. A log of JSON gets a record as it is.
func (s *Invocation) Hears(host, line string) {
	s.saying.Lock()
	defer s.saying.Unlock()
	s.meter.clear()
	switch text := printable.Text(line); {
	case !s.JSON:
		printable.Fprintf(s.stderr, "%s: %s\n", host, line)
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		printable.Fprintf(s.stderr, "%s\n", text)
	default:
		s.Log.Warn(line, "host", host)
	}
}
