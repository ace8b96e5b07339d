package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"volley/internal/disk"
	"volley/internal/printable"
)

// A meter tells how far a run is, by a bar on a terminal or by a line from time to time. Nil tells nobody.
type meter struct {
	s     *Session
	every time.Duration // between lines; 0: a bar

	mu          sync.Mutex // guards what follows
	done, total int64      // bytes, or nanoseconds of tune
	bar         *progressbar.ProgressBar
	told        time.Time
}

// Progress returns what hears how far the session is, and tells it by lines as often as asked for. For 0 that is a bar
// where stderr is a terminal, and else nil: logs and the mail of cron are for what went wrong.
func (s *Session) Progress(every time.Duration) func(done, more int64) {
	if f, ok := s.stderr.(*os.File); every > 0 || ok && !s.JSON && term.IsTerminal(int(f.Fd())) {
		s.meter = &meter{s: s, every: every, told: time.Now()}
		return s.meter.add
	}
	return nil
}

// add tells of more bytes that are done, and of more that have to be.
func (m *meter) add(done, more int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += done
	m.total = max(m.done, m.total+more) // a rank may find less to do than it said
	switch {
	case m.total == 0:
	case m.every > 0 && m.done > 0 && time.Since(m.told) >= m.every:
		m.tell()
	case m.every > 0:
	case m.bar == nil:
		m.bar = progressbar.NewOptions64(m.total,
			progressbar.OptionSetWriter(m.s.stderr), progressbar.OptionShowBytes(!m.timed()), progressbar.OptionUseIECUnits(true),
			progressbar.OptionThrottle(m.s.Limits.bar), progressbar.OptionFullWidth())
		m.bar.StartWithoutRender() // or the first rate is that of no time
	default:
		m.bar.ChangeMax64(m.total)
		m.bar.Set64(min(m.done, m.total-1)) // one that is full does not move any more, and there may be more to do
	}
}

// tell prints a line, or a record where the log has such. The caller holds the lock.
func (m *meter) tell() {
	m.told = time.Now()
	if m.s.JSON {
		host, _ := os.Hostname()
		slog.New(slog.NewJSONHandler(m.s.stderr, nil)).Info("progress", "verb", m.s.Verb, "host", host, "rank", m.s.rank(), "done", m.done, "total", m.total)
		return
	}
	amount := func(n int64) string { return humanize.IBytes(uint64(n)) }
	if m.timed() {
		amount = func(n int64) string { return time.Duration(n).Round(100 * time.Millisecond).String() }
	}
	printable.Fprintf(m.s.stderr, "volley: %s: %s of %s, %d %%\n", m.s.Verb, amount(m.done), amount(m.total), int(100*float64(m.done)/float64(m.total)))
}

// timed reports whether the meter counts time.
func (m *meter) timed() bool { return strings.HasPrefix(m.s.Verb, "tune") }

// clear takes the bar away until there is more progress.
func (m *meter) clear() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bar != nil {
		m.bar.Clear()
	}
}

// A clearing writer of stdout takes the bar away before anything is written, and keeps its last error.
type clearing struct {
	io.Writer
	s      *Session
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

// Stoppable has an interrupt end what computes and prints. Where that writes a file, its next write fails, and nothing is
// left of that.
func (s *Session) Stoppable(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		done := make(chan error, 1)
		go func() { done <- run(cmd, args) }()
		select {
		case err := <-done:
			return err
		case <-cmd.Context().Done():
			s.file.Lock() // for good
			return context.Cause(cmd.Context())
		}
	}
}
