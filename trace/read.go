package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"volley/files"
	"volley/internal/located"
)

// MaxBytes is the length of the longest trace that [ReadEvents] reads.
const MaxBytes = 256 << 20

// The largest numbers of a trace: more than any run has, and little enough for sums not to overflow.
const (
	maxNumber = math.MaxInt32
	maxMicros = 1e12    // 11 days
	maxMoment = 4e15    // where times count from 1970
	maxAmount = 1 << 60 // bytes
)

// ReadEvents reads what [Recorder.WriteTo] has written: the spans in the order of the file, which is that in which they
// began. Their Start counts from the first of them. Keys that other tools have added are passed over.
//
// It takes memory in proportion to the file, of at most [MaxBytes] bytes. The error is a
// *[files.FormatError], or that of r.
func ReadEvents(r io.Reader) ([]Event, error) {
	text, err := located.Read(r, MaxBytes)
	if err != nil {
		return nil, err
	}
	x := reading{open: map[messageKey]int{}}
	if err := located.List(text, "traceEvents", x.event); err != nil {
		return nil, err
	}
	for key := range x.open {
		return nil, &files.FormatError{Reason: fmt.Sprintf("the message of id2 %q at rank %d has no end, an event of ph e", key.id, key.rank)}
	}
	if len(x.events) == 0 {
		return nil, nil
	}
	zero := slices.MinFunc(x.events, func(a, b Event) int { return cmp.Compare(a.Start, b.Start) }).Start
	for i := range x.events {
		x.events[i].Start -= zero
	}
	return x.events, nil
}

// reading is what was read so far.
type reading struct {
	events []Event
	open   map[messageKey]int // events of messages that have begun and not ended
}

// A messageKey is how the end of a message finds its begin.
type messageKey struct {
	rank int
	id   string
}

// event reads one of traceEvents.
func (x *reading) event(d *json.Decoder) error {
	var r event
	if err := d.Decode(&r); err != nil {
		return err
	}
	switch r.Ph {
	case "X", "b", "e":
	case "M": // the name of a row
		return nil
	default:
		return fmt.Errorf("ph: %q: want X, b, e or M", r.Ph)
	}
	start, err := nanoseconds("ts", r.Ts, -maxMoment, maxMoment)
	if err != nil {
		return err
	}
	if r.Pid < 0 || r.Pid > maxNumber {
		return fmt.Errorf("pid: %d: want 0 to %d", r.Pid, maxNumber)
	}
	key := messageKey{rank: r.Pid}
	if r.Ph != "X" {
		if r.ID == nil {
			return fmt.Errorf("id2 is missing")
		}
		key.id = r.ID.Local
	}
	e := Event{Rank: r.Pid, Row: Row(r.Tid), Start: start}
	began, open := x.open[key]
	switch {
	case r.Ph == "X" && (r.Tid < 0 || e.Row >= Messages):
		return fmt.Errorf("tid: %d: want 0 to %d", r.Tid, Messages-1)
	case r.Ph == "X":
		e.Length, err = nanoseconds("dur", r.Dur, 0, maxMicros)
	case r.Ph == "b" && open:
		return fmt.Errorf("id2: %q: the message of that id before it has no end", key.id)
	case r.Ph == "b":
		e.Row = Messages
		x.open[key] = len(x.events)
	case !open:
		return fmt.Errorf("id2: %q: no message of that id has begun at rank %d", key.id, key.rank)
	default:
		delete(x.open, key)
		b := &x.events[began]
		if b.Length = start - b.Start; b.Length < 0 || b.Length > maxMicros*1000 {
			return fmt.Errorf("ts: the message ends %v after it has begun: want 0 to %v", time.Duration(b.Length), maxMicros*time.Microsecond)
		}
		return nil
	}
	if err == nil {
		err = e.describe(r)
	}
	x.events = append(x.events, e)
	return err
}

// nanoseconds returns a time in µs, from least to limit, in ns.
func nanoseconds(name string, micros *float64, least, limit float64) (int64, error) {
	switch {
	case micros == nil:
		return 0, fmt.Errorf("%s is missing", name)
	case !(*micros >= least && *micros <= limit):
		return 0, fmt.Errorf("%s: %v: want a number from %g to %g", name, *micros, least, limit)
	}
	return int64(math.Round(1000 * *micros)), nil
}

// kinds are all there are.
var kinds = []Kind{Agree, Plan, Compile, Check, Turn, Read, Code, Wait, Settle, Observe, Write, Send, Receive}

// describe sets what [Event.json] writes as the name and the arguments.
func (e *Event) describe(r event) (err error) {
	coding := strings.HasPrefix(r.Name, codeRound)
	if e.Kind = Kind(r.Name); coding {
		e.Kind = Code
	}
	if !slices.Contains(kinds, e.Kind) {
		return fmt.Errorf("name: %q: a run of volley has no such span", r.Name)
	}
	if (e.Row == Messages) != (e.Kind == Send || e.Kind == Receive) {
		return fmt.Errorf("ph: want b and e for a message, which may overlap others, X for all else")
	}
	if r.Args == nil {
		return fmt.Errorf("args is missing")
	}
	number := func(name string, n *int) int {
		switch {
		case err != nil:
		case n == nil:
			err = fmt.Errorf("args.%s is missing", name)
		case *n < 0 || *n > maxNumber:
			err = fmt.Errorf("args.%s: %d: want 0 to %d", name, *n, maxNumber)
		default:
			return *n
		}
		return 0
	}
	if e.First, e.Last, err = processors("processors", r.Args.Processors); err != nil {
		return err
	}
	switch e.Kind {
	case Agree, Plan, Compile, Check:
		return nil
	case Wait, Settle, Send, Receive:
		if e.Partner, _, err = processors("partner", r.Args.Partner); err != nil {
			return err
		}
		e.Round, e.Port, e.Peer = number("round", r.Args.Round), number("port", r.Args.Port), number("rank", r.Args.Rank)
	case Code:
		e.Round = AfterRounds
		if coding {
			e.Round = number("round", r.Args.Round)
		}
	}
	if e.Bytes = r.Args.Bytes; e.Bytes < 0 || e.Bytes > maxAmount {
		return fmt.Errorf("args.bytes: %d: want 0 to %d", e.Bytes, int64(maxAmount))
	}
	e.Segment = number("segment", r.Args.Segment)
	return err
}

// processors reads what span has written.
func processors(name, text string) (first, last int, err error) {
	if n, _ := fmt.Sscanf(text, "processors %d–%d", &first, &last); n < 2 {
		fmt.Sscanf(text, "processor %d", &first)
		last = first
	}
	if 0 <= first && first <= last && last <= maxNumber && text == span(first, last) {
		return first, last, nil
	}
	return 0, 0, fmt.Errorf("args.%s: %q: want processor 3, or processors 4–7", name, text)
}
