package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"volley/engine"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/ssh"
	"volley/transport"
)

// A party is this process among those that run a verb together.
type party struct {
	transport.Transport
	name  string   // of its comm
	hosts []string // of the processes, each once, sorted

	// Where pairs of processes can be measured, and what each says be told to all:
	here   *engine.Place
	host   string // what the user calls that of this process
	gather func(ctx context.Context, record []byte, limit time.Duration) ([]json.RawMessage, error)

	// part, unless nil, tells the processes how each of them ended, so that one of them says it for all. It returns
	// what this one is to say, and the exit code. If some do not come, it ends the whole job and does not return.
	part func(mine launch.Ending, s *session) (code int)

	// Where the processes are in sets, Transport is that of this one's set, the name of which part says with the
	// ending. apart does the work of it. Over MPI, where processes may not end before others, it waits for all sets.
	set   string
	apart func(work func())
}

// job reports whether there may be other processes: then each has its own files.
func (p *party) job() bool { return p.part != nil }

// finish ends the session by the error of its verb, and returns the exit code.
func (s *session) finish(err error) int {
	if failed := s.out.failed.Load(); failed != nil && (err == nil || errors.Is(err, *failed)) { // without what the writer was at
		err = *failed
	}
	code := s.conclude(s.end(err))
	s.log.Info("ended", "verb", s.verb, "exit_code", code, "seconds", time.Since(s.begun).Seconds())
	return code
}

// conclude writes the metrics, if this process is to, and returns the exit code.
func (s *session) conclude(code int) int {
	if s.metrics == "" || s.party != nil && s.party.job() && !s.leads {
		return code
	}
	if err := s.gauges.Write(s.metrics, s.verb, s.begun, code); err != nil {
		s.say(slog.LevelError, launch.Saying{Text: fmt.Sprintf("--metrics %s: not written: %v", s.metrics, err)})
		return max(code, exit.Failed)
	}
	return code
}

// end ends a session with an error, which one process of all says, and returns the exit code.
func (s *session) end(err error) int {
	host, _ := os.Hostname()
	came, _ := s.came.Load().(string)
	mine := launch.Ending{Code: exit.Code(err), Host: host, Result: came, Values: s.gauges.Values()}
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
	} else if err != nil && mine.Code != exit.Wrong && !errors.As(err, new(*commonError)) { // which all find
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
