package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"volley/internal/disk"
	"volley/internal/printable"
)

// A meter tells how far a run is, by a line from time to time, which on a terminal takes the place of the one before. Nil
// tells nobody.
type meter struct {
	s        *Invocation
	interval time.Duration // between lines
	rewrites bool
	begun    time.Time

	mu              sync.Mutex // guards what follows
	finished, total int64      // bytes
	told            time.Time
	width           int // of the line that stands on the terminal
}

// Progress returns what hears how far the session is, and tells it by lines as often as asked for. For 0 that is one line
// where stderr is a terminal, and else nil: logs and the mail of cron are for what went wrong.
func (s *Invocation) Progress(interval time.Duration) func(finished, added int64) {
	f, ok := s.stderr.(*os.File)
	if interval == 0 && (!ok || s.JSON || !term.IsTerminal(int(f.Fd()))) {
		return nil
	}
	current := time.Now()
	s.meter = &meter{s: s, interval: cmp.Or(interval, s.Limits.redraw), rewrites: interval == 0, begun: current, told: current}
	return s.meter.add
}

// add tells of more bytes that are done, and of more that have to be.
func (m *meter) add(finished, added int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished += finished
	m.total = max(m.finished, m.total+added) // a rank may find less to do than it said
	if m.finished > 0 && time.Since(m.told) >= m.interval {
		m.tell()
	}
}

// tell prints a line, or a record where the log has such. The caller holds the lock.
func (m *meter) tell() {
	m.told = time.Now()
	if m.s.JSON {
		host, _ := os.Hostname()
		slog.New(slog.NewJSONHandler(m.s.stderr, nil)).Info("progress", "verb", m.s.Verb, "host", host, "rank", m.s.rank(), "done", m.finished, "total", m.total)
		return
	}
	amount := func(n int64) string { return humanize.IBytes(uint64(n)) }
	line := fmt.Sprintf("%s: %s of %s, %d %%", m.s.Verb, amount(m.finished), amount(m.total), int(100*float64(m.finished)/float64(m.total)))
	if !m.rewrites {
		printable.Fprintf(m.s.stderr, "volley: %s\n", line)
		return
	}
	line += ", " + amount(int64(float64(m.finished)/m.told.Sub(m.begun).Seconds())) + "/s"
	printable.Fprintf(m.s.stderr, "\r%-*s", m.width, line) // over all of the line before
	m.width = len(line)
}

// clear takes the line off the terminal until there is more progress.
func (m *meter) clear() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.width > 0 {
		printable.Fprintf(m.s.stderr, "\r%*s\r", m.width, "")
		m.width = 0
	}
}

// A clearing writer of stdout takes the line of progress away before anything is written, and keeps its last error.
type clearing struct {
	io.Writer
	s      *Invocation
	failed atomic.Pointer[error] // by a verb that may go on after an interrupt
}

func (w *clearing) Write(p []byte) (int, error) {
	w.s.meter.clear()
	n, err := w.Writer.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) { // of which there is nobody to tell
		err = fmt.Errorf("cannot print to standard output: %s", disk.Reason(err))
		w.failed.Store(&err)
	}
	return n, err
}

// Stoppable has an interrupt end what computes and prints.
func Stoppable(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ended := make(chan error, 1)
		go func() { ended <- run(cmd, args) }()
		select {
		case err := <-ended:
			return err
		case <-cmd.Context().Done():
			return context.Cause(cmd.Context())
		}
	}
}
