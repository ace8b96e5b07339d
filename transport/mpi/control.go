//go:build mpi

package mpi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"volley/transport"
)

// A controlMessage is between endpoints. One field is set, and of an abort or an answer those that belong to it.
type controlMessage struct {
	Abort    *string `json:",omitempty"`    // why the sender ended the group
	Code     int     `json:",omitempty"`    // with Abort: the exit code of that error; 0: it has none
	Clear    int     `json:",omitempty"`    // clear-to-send: MPI's tag of a message to the sender
	Ask      int     `json:",omitempty"`    // a question's number: for whom does the receiver wait?
	Answer   int     `json:",omitempty"`    // that number
	WaitsFor int     `json:"For,omitempty"` // for this rank, or -1: for nobody
}

// A heardError is an error of another rank, of which its text and exit code have come.
type heardError struct {
	error
	code int
}

func (e heardError) ExitCode() int { return e.code }

// cause returns the error of an abort.
func (m *controlMessage) cause() error {
	err := errors.New(*m.Abort)
	if m.Code == 0 {
		return err
	}
	return heardError{err, m.Code}
}

// controlBytes bounds a control message. Texts are cut to an eighth of it: JSON may need six bytes for one.
const controlBytes = 2 << 10

// A controlSend is the send of a control message.
type controlSend struct {
	e    *Endpoint
	pins runtime.Pinner
}

// sendControl has a control message posted.
func (e *Endpoint) sendControl(dst int, m controlMessage) {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // of a struct of texts and numbers
	}
	s := &controlSend{e: e}
	s.pins.Pin(&text[0])
	e.controlSends++
	e.add(s, 0, true, dst, controlTag, text)
}

func (s *controlSend) ended(int, int, int, error) { // who does not hear of it hears of nothing
	s.e.controlSends--
	s.pins.Unpin()
}

// A controlReceive is the receive of the next control message.
type controlReceive struct {
	e      *Endpoint
	buffer []byte
	pins   runtime.Pinner
}

// postControl has the receive of the next control message posted.
func (e *Endpoint) postControl() {
	e.add(e.control, 0, false, anyRank, controlTag, e.control.buffer)
}

// ended reads the control message that has come.
func (r *controlReceive) ended(_, bytes, sender int, err error) {
	e := r.e
	if e.closed {
		r.pins.Unpin()
		return
	}
	var m controlMessage
	if err == nil && bytes >= 0 {
		err = json.Unmarshal(r.buffer[:bytes], &m)
	}
	if err != nil {
		e.fail(err)
		return
	}
	e.postControl()
	switch {
	case m.Abort != nil:
		e.end(&transport.AbortError{Rank: sender, Cause: m.cause()})
	case m.Clear != 0:
		e.clears[destination{sender, m.Clear}]++
		e.release()
	case m.Ask != 0:
		e.sendControl(sender, controlMessage{Answer: m.Ask, WaitsFor: e.oldestWait()})
	case m.Answer != 0:
		if reply := e.answers[m.Answer]; reply != nil {
			delete(e.answers, m.Answer)
			reply <- m.WaitsFor
		}
	}
}

// Inquire asks a rank for whom it has waited the longest; -1 is nobody. It waits until ctx ends.
func (e *Endpoint) Inquire(ctx context.Context, rank int) (int, error) {
	if rank < 0 || rank >= e.size || rank == e.rank {
		return -1, fmt.Errorf("rank %d cannot ask rank %d: not another rank of the group of %d", e.rank, rank, e.size)
	}
	reply := make(chan int, 1)
	var number int
	call(func() {
		e.questions++
		number = e.questions
		e.answers[number] = reply
		e.sendControl(rank, controlMessage{Ask: number})
		e.post()
	})
	for {
		select {
		case whom := <-reply:
			return whom, nil
		default:
			sleep(leastSleep)
		}
		err := context.Cause(ctx)
		call(func() {
			if e.abort != nil {
				err = e.abort
			}
			if e.progress(); err != nil {
				delete(e.answers, number)
			}
		})
		if err != nil {
			return -1, fmt.Errorf("rank %d does not answer: %w", rank, err)
		}
	}
}

// oldestWait returns whom this rank has waited for the longest, or -1. A wait given up counts: others ask why.
func (e *Endpoint) oldestWait() int {
	var oldest *transfer
	for _, t := range append(e.underWay(), e.waiting...) {
		if _, waits := e.waits[t.queue]; waits && (oldest == nil || t.queue.since.Before(oldest.queue.since)) {
			oldest = t
		}
	}
	if oldest == nil {
		return -1
	}
	return oldest.Rank
}

// end notes the first abort.
func (e *Endpoint) end(err *transport.AbortError) {
	if e.abort == nil {
		e.abort = err
	}
	for q := range e.waits {
		q.signal()
	}
}

// Abort ends the group; the first one that this rank hears of counts for it. After Close it does nothing.
func (e *Endpoint) Abort(cause error) {
	call(func() {
		e.fail(cause)
		e.post()
	})
}

// fail ends the group, for a cause at this rank, and has all others told, unless it has ended or is closed.
func (e *Endpoint) fail(cause error) {
	if e.abort != nil || e.closed {
		return
	}
	e.end(&transport.AbortError{Rank: e.rank, Cause: cause})
	text := cause.Error()
	text = strings.ToValidUTF8(text[:min(len(text), controlBytes/8)], "")
	m := controlMessage{Abort: &text}
	if coder := interface{ ExitCode() int }(nil); errors.As(cause, &coder) {
		m.Code = coder.ExitCode()
	}
	for r := range e.size {
		if r != e.rank {
			e.sendControl(r, m)
		}
	}
}
