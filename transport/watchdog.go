package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTimeout is wrapped by the error of a wait that took too long.
var ErrTimeout = errors.New("timed out")

// A Watchdog bounds waits for messages, one at a time: it ends their context when one takes
// too long. One timer serves all of them.
type Watchdog struct {
	Transport Transport
	Timeout   time.Duration           // 0: no bound
	Cancel    context.CancelCauseFunc // of the context of the waits

	timer    *time.Timer
	rank     int // that is waited for
	timedOut chan error
}

// Start is called before a wait for a rank.
func (w *Watchdog) Start(rank int) {
	w.rank = rank
	switch {
	case w.Timeout == 0:
	case w.timer == nil:
		w.timedOut = make(chan error, 1)
		w.timer = time.AfterFunc(w.Timeout, func() { // others may ask while it waits
			err := TimedOut(w.Transport, w.rank, w.Timeout)
			w.Cancel(err)
			w.timedOut <- err
		})
	default:
		w.timer.Reset(w.Timeout)
	}
}

// Stop is called after a wait, with its error, and returns the error to go by, which wraps [ErrTimeout] where the wait
// took too long. One that ended well, but too late, must not make the next one fail. The transport is not asked anything
// after Stop.
func (w *Watchdog) Stop(err error) error {
	if w.timer == nil || w.timer.Stop() {
		return err
	}
	return cmp.Or(err, <-w.timedOut)
}

// TimedOut returns the error of a wait for a rank that has taken longer than the timeout. It wraps [ErrTimeout], and
// says for whom the rank waits.
func TimedOut(t Transport, rank int, timeout time.Duration) error {
	err := fmt.Errorf("%w: nothing for %v", ErrTimeout, timeout)
	if blamed := Blame(t, rank); blamed != "" {
		err = fmt.Errorf("%w; %s", err, blamed)
	}
	return err
}

// Fail aborts the group of t, unless another rank has, and returns the error that counts.
func Fail(t Transport, err error) error {
	if aborted := new(AbortError); errors.As(err, &aborted) {
		return aborted
	}
	t.Abort(err)
	return err
}
