package session

import (
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

// A Party is this process among those that run a verb together.
type Party struct {
	transport.Transport
	Name     string           // of its comm
	Listener *engine.Listener // where the processes talk by TCP, else nil

	// Part, unless nil, tells the processes how each of them ended, so that one of them says it for all. It returns
	// what this one is to say, and the exit code. If some do not come, it ends the whole job and does not return.
	Part func(mine launch.Ending, s *Invocation) (code int)

	// Where the processes are in sets, Transport is that of this one's set, the name of which Part says with the
	// ending. Apart does the work of it. Over MPI, where processes may not end before others, it waits for all sets.
	Set   string
	Apart func(work func())
}

// Job reports whether there may be other processes: then each has its own files.
func (p *Party) Job() bool { return p.Part != nil }

// Finish ends the session by the error of its verb, and returns the exit code.
func (s *Invocation) Finish(err error) int {
	if failed := s.stdout.failed.Load(); failed != nil && (err == nil || errors.Is(err, *failed)) { // without what the writer was at
		err = *failed
	}
	code := s.Conclude(s.end(err))
	s.Log.Info("ended", "verb", s.Verb, "exit_code", code, "seconds", time.Since(s.begun).Seconds())
	return code
}

// Conclude writes the metrics, if this process is to, and returns the exit code.
func (s *Invocation) Conclude(code int) int {
	if s.Metrics == "" || s.Party != nil && s.Party.Job() && !s.leads {
		return code
	}
	if err := s.Gauges.Write(s.Metrics, s.Verb, s.begun, code); err != nil {
		s.Say(slog.LevelError, launch.Saying{Text: fmt.Sprintf("--metrics %s: not written: %v", s.Metrics, err)})
		return max(code, exit.Failed)
	}
	return code
}

// end ends a session with an error, which one process of all says, and returns the exit code.
func (s *Invocation) end(err error) int {
	host, _ := os.Hostname()
	mine := launch.Ending{Code: exit.Code(err), Host: host, Values: s.Gauges.Values()}
	if err != nil {
		if mine.Text = Message(err); s.read.Load() {
			mine.Text = dash.ReplaceAllString(mine.Text, "${1}standard input$2")
		}
	}
	if s.Party != nil {
		mine.Set = s.Party.Set
	}
	if s.Party == nil || !s.Party.Job() {
		switch {
		case s.LaunchRank != nil:
			s.LaunchRank.Report(mine)
		case err != nil:
			s.Say(slog.LevelError, launch.Saying{Text: mine.Text})
		}
		return mine.Code
	}
	if aborted := new(transport.AbortError); errors.As(err, &aborted) && aborted.Rank != s.Party.Rank() || errors.Is(err, ssh.ErrGone) {
		mine.Heard = true
	} else if err != nil && mine.Code != exit.Wrong { // which all find
		s.Party.Abort(err)
	}
	return s.Party.Part(mine, s)
}

// Hear says what went wrong in a run of which this is rank 0, and keeps what others note of their sets.
func (s *Invocation) Hear(endings []*launch.Ending) {
	s.leads = true
	for _, x := range launch.Sayings(endings) {
		s.Say(slog.LevelError, x)
	}
	for r, x := range endings {
		if r > 0 && x != nil {
			s.Gauges.Note(x.Values)
		}
	}
}
