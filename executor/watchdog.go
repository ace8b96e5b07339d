package executor

import (
	"context"
	"fmt"
	"time"

	"volley/transport"
)

// A watchdog bounds waits, one at a time: it ends their context when one takes
// too long. One timer serves all of them.
type watchdog struct {
	t       transport.Transport
	timeout time.Duration // 0: no bound
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	rank    int // that is waited for
}

// start is called before a wait for a rank.
func (w *watchdog) start(rank int) {
	w.rank = rank
	switch {
	case w.timeout == 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.timeout, func() { w.cancel(w.late()) }) // others may ask while it waits
	default:
		w.timer.Reset(w.timeout)
	}
}

// stop is called after a wait, with its error, and returns the error to go by:
// a wait that ended well, but too late, must not make the next one fail.
func (w *watchdog) stop(err error) error {
	if w.timer != nil && !w.timer.Stop() && err == nil {
		return w.late()
	}
	return err
}

func (w *watchdog) late() error { return Late(w.t, w.rank, w.timeout) }

// Late returns the error of a wait for a rank that took longer than the timeout. It wraps
// [ErrTimeout] and says whom the rank waits for.
func Late(t transport.Transport, rank int, timeout time.Duration) error {
	err := fmt.Errorf("%w: nothing for %v", ErrTimeout, timeout)
	if who := transport.Blame(t, rank); who != "" {
		err = fmt.Errorf("%w; %s", err, who)
	}
	return err
}
