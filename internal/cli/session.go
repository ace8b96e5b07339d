package cli

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
	own     bool // the process has no other session, so that this one may change it: its cores, priority and signals
	stdin   io.Reader
	environ []string // as os.Environ has it, also for what the session starts
	program string   // of volley, for processes and for hosts that have none; "": that of this process
	limits  timeLimits
}

// A timeLimits says how long things may take.
type timeLimits struct {
	end      time.Duration // of a rank, from the end of its run to that of its process
	ending   time.Duration // until a process has heard how others have ended
	progress time.Duration // between what a rank tells its launch
	bar      time.Duration // between two pictures of a bar
}

var usualLimits = timeLimits{end: 15 * time.Second, ending: 3 * time.Second, progress: 200 * time.Millisecond, bar: 100 * time.Millisecond}

// A session is a run of the command line. The verb that joins others leaves the party there, and errors come out by it.
type session struct {
	surroundings
	verb  string // what this process does
	party *party
	alone bool         // the others did not come
	at    *launch.Rank // of a launch; nil: there is none
	leads bool         // it has heard how all processes ended

	read   atomic.Bool // stdin is, or is being
	file   sync.Mutex  // is held by what writes the file of -o
	saying sync.Mutex  // is held while a line of a command is printed
	out    *clearing   // stdout
	stderr io.Writer
	log    *slog.Logger
	meter  *meter // nil: there is none

	begun   time.Time
	json    bool   // the log is, and so are errors
	format  string // of the log
	metrics string // the file; "": none
	gauges  gauges.Run
	came    atomic.Value // a string: what protect has come to, as post hears it
}

// newSession returns a session that finds what this process does.
func newSession() *session {
	return &session{surroundings: surroundings{stdin: os.Stdin, environ: os.Environ(), limits: usualLimits}}
}

// rankOf returns the session of a rank of a launch in this one.
func (s *session) rankOf(r *launch.Rank) *session {
	return &session{surroundings: s.surroundings, at: r}
}

// getenv is [os.Getenv].
func (s *session) getenv(name string) string {
	return launch.Getenv(s.environ, name)
}

// askable reports whether ssh can ask a user, at the terminal of this process or by a program for that.
func (s *session) askable() bool {
	if s.getenv("SSH_ASKPASS") != "" {
		return true
	}
	f, err := os.Open("/dev/tty")
	if err == nil {
		f.Close()
	}
	return err == nil
}

// self returns the file of this program.
func (s *session) self() (string, error) {
	if s.program != "" {
		return s.program, nil
	}
	return os.Executable()
}

// logTo has the log written, with what is done if verbose.
func (s *session) logTo(verbose, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	if verbose {
		options.Level = slog.LevelDebug
	}
	var h slog.Handler = slog.NewTextHandler(s.stderr, options)
	if json {
		h = slog.NewJSONHandler(s.stderr, options)
	}
	if s.log = slog.New(h); s.own {
		slog.SetDefault(s.log) // packages of others may use it
	}
	return s.log
}

// begin begins the session with a command line, and has its verbs print there.
func (s *session) begin(cmd *cobra.Command, stdout, stderr io.Writer) {
	s.begun, s.stderr, s.out = time.Now(), stderr, &clearing{Writer: stdout, s: s}
	s.logTo(false, false) // until the flags are known
	cmd.SetOut(s.out)
	cmd.SetErr(stderr)
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
	if f := cmd.Flags().Lookup("metrics"); f != nil {
		if f.Changed && s.verb != cmd.Name() {
			return exit.Usagef("--metrics: a dry run has no metrics: leave --dry-run or --metrics out")
		}
		if err := checkOutputFile("--metrics", f.Value.String(), ""); err != nil {
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
	f.StringVar(&s.metrics, "metrics", "", "")
	f.Parse(args)
	if verb.Flags().Lookup("metrics") == nil {
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

// fails says what failed.
func (s *session) fails(x launch.Saying) { s.say(slog.LevelError, x) }

// hears prints what a host has on its stderr.
func (s *session) hears(host, line string) {
	s.saying.Lock()
	defer s.saying.Unlock()
	s.meter.clear()
	if s.json {
		s.pass(host, line)
	} else {
		printable.Fprintf(s.stderr, "%s: %s\n", host, line)
	}
}

// commandSays prints a line of a command on stderr, with the node's directory.
func (s *session) commandSays(c *launch.Commander, which, line string) {
	if s.json {
		s.log.Warn(line, "verb", "protect", "node", c.Name, "command", which)
		return
	}
	s.saying.Lock()
	defer s.saying.Unlock()
	s.meter.clear()
	printable.Fprintf(s.stderr, "%s: %s: %s\n", c.Dir, which, line)
}
