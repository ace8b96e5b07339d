//go:build mpi

package mpi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"volley/transport"
)

// A controlMessage is one that the ranks' endpoints send each other. One field is set, or, of
// an answer, the last three.
type controlMessage struct {
	Abort   *string `json:",omitempty"` // why the sender ended the group
	Clear   int     `json:",omitempty"` // clear-to-send: MPI's tag of a message to the sender
	Ask     int     `json:",omitempty"` // a question's number: for whom does the receiver wait?
	Answer  int     `json:",omitempty"` // that number
	For     int     `json:",omitempty"` // for this rank, or -1: for nobody
	Seconds float64 `json:",omitempty"` // for so long
}

// controlBytes is how long a control message may be. Texts are cut to an eighth of it: JSON
// may need six bytes for one of theirs.
const controlBytes = 2 << 10

// answer is what a rank says of itself.
type answer struct {
	rank int // that it waits for, or -1
	time time.Duration
}

// sendControl sends a control message.
func (e *Endpoint) sendControl(dst int, m controlMessage) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, err := e.send(dst, controlTag, [][]byte{text})
	if err == nil {
		e.controlSends = append(e.controlSends, r)
	}
	return err
}

// postControl posts the receive of the next control message.
func (e *Endpoint) postControl() (err error) {
	e.controlReceive, err = e.receive(anyRank, controlTag, e.controlBuffer)
	return err
}

// readControl reads the control message that has come.
func (e *Endpoint) readControl() {
	var m controlMessage
	from, wrong := e.controlReceive.from, e.controlReceive.err
	if wrong == nil && e.controlReceive.bytes >= 0 {
		wrong = json.Unmarshal(e.controlBuffer[:e.controlReceive.bytes], &m)
	}
	if err := e.postControl(); err != nil || wrong != nil {
		e.end(&transport.AbortError{Rank: e.rank, Cause: errors.Join(wrong, err)})
		return
	}
	switch {
	case m.Abort != nil:
		e.end(&transport.AbortError{Rank: from, Cause: errors.New(*m.Abort)})
	case m.Clear != 0:
		to := destination{from, m.Clear}
		e.clears[to]++
		e.sendCleared(to)
	case m.Ask != 0:
		rank, since := e.oldestWait()
		e.sendControl(from, controlMessage{Answer: m.Ask, For: rank, Seconds: since.Seconds()})
	case m.Answer != 0:
		if to := e.answers[m.Answer]; to != nil {
			delete(e.answers, m.Answer)
			to <- answer{m.For, time.Duration(m.Seconds * float64(time.Second))}
		}
	}
}

// Inquire asks a rank for whom it has waited the longest, and for how long; -1 is nobody.
// It returns an error where no answer comes until ctx ends.
func (e *Endpoint) Inquire(ctx context.Context, rank int) (int, time.Duration, error) {
	to := make(chan answer, 1)
	var number int
	var err error
	call(func() {
		if err = e.peer("ask", rank); err == nil {
			e.questions++
			number = e.questions
			e.answers[number] = to
			err = e.sendControl(rank, controlMessage{Ask: number})
		}
	})
	if err != nil {
		return -1, 0, err
	}
	for {
		select {
		case a := <-to:
			return a.rank, a.time, nil
		case <-ctx.Done():
			call(func() { delete(e.answers, number) })
			return -1, 0, fmt.Errorf("rank %d does not answer: %w", rank, context.Cause(ctx))
		default:
			sleep(leastSleep)
			call(e.progress)
		}
	}
}

// oldestWait returns whom this rank has waited for the longest, or -1.
func (e *Endpoint) oldestWait() (rank int, waited time.Duration) {
	rank = -1
	for w := range e.waits {
		if d := time.Since(w.since); rank < 0 || d > waited {
			rank, waited = w.rank, d
		}
	}
	return rank, waited
}

// end notes the first abort.
func (e *Endpoint) end(err *transport.AbortError) {
	if e.abort == nil {
		e.abort = err
	}
}

// Abort ends the group; the first one that this rank hears of counts for it. After Close it does
// nothing.
func (e *Endpoint) Abort(cause error) {
	call(func() {
		if e.abort != nil || e.closed {
			return
		}
		e.end(&transport.AbortError{Rank: e.rank, Cause: cause})
		text := cause.Error()
		text = strings.ToValidUTF8(text[:min(len(text), controlBytes/8)], "")
		for r := range e.size {
			if r != e.rank {
				e.sendControl(r, controlMessage{Abort: &text})
			}
		}
	})
}
