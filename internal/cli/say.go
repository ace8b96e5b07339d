package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"

	"volley/internal/launch"
	"volley/internal/printable"
)

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
