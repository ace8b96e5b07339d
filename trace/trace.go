// Package trace records what the ranks of a run did when, and writes it as the trace-event
// JSON that Perfetto (https://ui.perfetto.dev) and chrome://tracing open.
//
// docs/trace.md says what the rows and the arguments are.
package trace

import (
	"slices"
	"sync"
	"time"
)

// A Kind is what was done.
type Kind string

// What a run does, besides the segments.
const (
	Agree   Kind = "agree"   // compares what all ranks are about to do
	Plan    Kind = "plan"    // chooses the plan
	Compile Kind = "compile" // makes the programs ready
	Check   Kind = "check"   // compares the fingerprints
)

// What is done for a segment.
const (
	Turn    Kind = "turn"    // waits until something else was read or written
	Read    Kind = "read"    // the inputs
	Code    Kind = "code"    // what can be computed before Round is sent
	Wait    Kind = "wait"    // for a message to come
	Settle  Kind = "settle"  // waits until a message was taken
	Observe Kind = "observe" // takes fingerprints
	Write   Kind = "write"   // the outputs
)

// Messages, which are under way while other things are done.
const (
	Send    Kind = "send"    // from its start until it was seen to be taken
	Receive Kind = "receive" // from when it was asked for until it was seen to be there
)

// A Row is where in a rank a span is: those of one row follow one another.
type Row int

// The rows of a rank. Messages are in none.
const (
	RunRow    Row = iota // from greeting to check
	Pipeline0            // every segment, or every other
	Pipeline1            // the other ones
	Messages
)

// AfterRounds is the Round of coding that follows the last one.
const AfterRounds = -1

// An Event is one span. It goes to other processes as JSON.
type Event struct {
	Kind   Kind  `json:"kind"`
	Rank   int   `json:"rank"`
	Row    Row   `json:"row"`
	Start  int64 `json:"start"`  // ns since 1970, by the clock where it was recorded
	Length int64 `json:"length"` // ns

	// First to Last are the processors of the rank that it is about.
	First int `json:"first"`
	Last  int `json:"last"`

	Segment int   `json:"segment"` // from 0
	Round   int   `json:"round"`   // of Code, Wait, Settle and messages
	Port    int   `json:"port"`    // of Wait, Settle and messages, as what follows
	Peer    int   `json:"peer"`    // rank
	Partner int   `json:"partner"` // processor there
	Bytes   int64 `json:"bytes"`   // of packets, without headers
}

// A Recorder collects events of any number of ranks, safe for concurrent use. A nil one records nothing.
type Recorder struct {
	base  time.Time
	epoch int64 // ns since 1970 at base

	mu     sync.Mutex // guards events
	events []Event
}

// New returns a recorder without events.
func New() *Recorder {
	start := time.Now()
	return &Recorder{base: start, epoch: start.UnixNano()}
}

// Now returns the time in ns since 1970, which never goes back; 0 where r is nil.
func (r *Recorder) Now() int64 {
	if r == nil {
		return 0
	}
	return r.epoch + int64(time.Since(r.base))
}

// End records an event that has begun at e.Start and ends now.
func (r *Recorder) End(e Event) {
	if r == nil {
		return
	}
	e.Length = r.Now() - e.Start
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns what was recorded so far, in the order in which it ended.
func (r *Recorder) Events() []Event { return r.Since(0) }

// Since returns what was recorded after the first n events, of which there are as many, in the order in which it ended.
func (r *Recorder) Since(n int) []Event {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events[n:])
}

// Merge adds another recorder's events, moved so that both agreed on a run at one time: clocks of machines differ.
func (r *Recorder) Merge(events []Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	shift := int64(0)
	if mine, theirs := agreed(r.events), agreed(events); mine != 0 && theirs != 0 {
		shift = mine - theirs
	}
	for _, e := range events {
		e.Start += shift
		r.events = append(r.events, e)
	}
}

// agreed returns when the first agreement ended, or 0.
func agreed(events []Event) int64 {
	for _, e := range events {
		if e.Kind == Agree {
			return e.Start + e.Length
		}
	}
	return 0
}
