package trace

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"volley/internal/located"
)

// MaxBytes is the length of the longest trace that [ReadEvents] reads.
const MaxBytes = 256 << 20

// The largest numbers of a trace: more than any run has, and little enough for sums not to
// overflow.
const (
	maxNumber = math.MaxInt32
	maxMicros = 1e12    // 11 days
	maxMoment = 4e15    // where times count from 1970
	maxAmount = 1 << 60 // bytes
)

// A FormatError says why a file is no trace: its Line, from 1, and the Reason.
type FormatError = located.Error

// ReadEvents reads what [Recorder.WriteTo] has written: the spans in the order of the file, which
// is that in which they began. Their Start counts from the first of them. Keys
// that other tools have added are passed over.
//
// It takes memory in proportion to the file, of at most [MaxBytes] bytes. The error is a
// *[FormatError], or that of r.
func ReadEvents(r io.Reader) ([]Event, error) {
	v, err := located.Parse(r, MaxBytes)
	if err != nil {
		return nil, err
	}
	file, err := v.Object()
	if err != nil {
		return nil, err
	}
	list, err := file.Get("traceEvents")
	if err != nil {
		return nil, err
	}
	x := reading{open: map[way]begun{}}
	if err := list.List(x.record); err != nil {
		return nil, err
	}
	var first *begun // of the messages without an end
	for _, b := range x.open {
		if first == nil || b.event < first.event {
			first = &b
		}
	}
	if first != nil {
		return nil, first.value.Errorf("the message has no end, a record of ph e")
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
	open   map[way]begun // messages that have begun and not ended
}

// A way is how the end of a message finds its begin.
type way struct {
	rank int
	id   string
}

type begun struct {
	event int
	value located.Value
}

// record reads one of traceEvents.
func (x *reading) record(v located.Value) error {
	var err error
	f := (&fields{err: &err}).object(v)
	switch ph := f.text("ph"); ph {
	case "M": // the name of a row
	case "X":
		e := f.event(false)
		e.Row = Row(f.int("tid", 0, int64(Messages)-1))
		e.Length = f.nanoseconds("dur", 0, maxMicros)
		x.events = append(x.events, e)
	case "b":
		e := f.event(true)
		e.Row = Messages
		key := way{e.Rank, f.in("id2").text("local")}
		if _, twice := x.open[key]; twice {
			f.errorf("id2", "%q: the message of that id before it has no end", key.id)
		}
		x.open[key] = begun{len(x.events), v}
		x.events = append(x.events, e)
	case "e":
		end := f.nanoseconds("ts", -maxMoment, maxMoment)
		key := way{int(f.int("pid", 0, maxNumber)), f.in("id2").text("local")}
		b, ok := x.open[key]
		if !ok {
			f.errorf("id2", "%q: no message of that id has begun at rank %d", key.id, key.rank)
			break
		}
		delete(x.open, key)
		e := &x.events[b.event]
		if e.Length = end - e.Start; e.Length < 0 || e.Length > maxMicros*1000 {
			f.errorf("ts", "the message ends %v after it has begun: want 0 to %v", time.Duration(e.Length), maxMicros*time.Microsecond)
		}
	default:
		f.errorf("ph", "%q: want X, b, e or M", ph)
	}
	return err
}

// fields reads the members of an object. After the first error, which it keeps, what it
// returns is of no use.
type fields struct {
	located.Object
	err *error
}

func (f *fields) keep(err error) {
	if *f.err == nil {
		*f.err = err
	}
}

// errorf keeps the error of a member, which is there.
func (f *fields) errorf(key, format string, args ...any) {
	v, _ := f.Find(key)
	if *f.err == nil {
		*f.err = v.Errorf(format, args...)
	}
}

func (f *fields) object(v located.Value) *fields {
	o, err := v.Object()
	f.keep(err)
	return &fields{o, f.err}
}

// get returns what a method of a member returns.
func get[T any](f *fields, key string, read func(located.Value) (T, error)) (x T) {
	if *f.err != nil {
		return x
	}
	v, err := f.Get(key)
	if err == nil {
		x, err = read(v)
	}
	f.keep(err)
	return x
}

func (f *fields) text(key string) string { return get(f, key, located.Value.Text) }

func (f *fields) int(key string, least, most int64) int64 {
	return get(f, key, func(v located.Value) (int64, error) { return v.Int(least, most) })
}

func (f *fields) nanoseconds(key string, least, most float64) int64 {
	return int64(math.Round(1000 * get(f, key, func(v located.Value) (float64, error) { return v.Float(least, most) })))
}

// in returns the members of a member.
func (f *fields) in(key string) *fields {
	o := get(f, key, located.Value.Object)
	return &fields{o, f.err}
}

// processors reads what span has written.
func (f *fields) processors(key string) (first, last int) {
	text := f.text(key)
	if rest, ok := strings.CutPrefix(text, "processor "); ok {
		if n, err := strconv.ParseUint(rest, 10, 31); err == nil {
			return int(n), int(n)
		}
	}
	if rest, ok := strings.CutPrefix(text, "processors "); ok {
		a, b, _ := strings.Cut(rest, "–")
		first, err := strconv.ParseUint(a, 10, 31)
		last, wrong := strconv.ParseUint(b, 10, 31)
		if err == nil && wrong == nil && first <= last {
			return int(first), int(last)
		}
	}
	f.errorf(key, "%q: want processor 3, or processors 4–7", text)
	return 0, 0
}

// kinds are all there are.
var kinds = []Kind{Agree, Plan, Compile, Check, Turn, Read, Code, Wait, Settle, Observe, Write, Send, Receive}

// event reads what spans and begins of messages have in common.
func (f *fields) event(message bool) (e Event) {
	name := f.text("name")
	coding := strings.HasPrefix(name, codeRound)
	if e.Kind = Kind(name); coding {
		e.Kind = Code
	}
	if !slices.Contains(kinds, e.Kind) {
		f.errorf("name", "%q: a run of volley has no such span", name)
	}
	if message != (e.Kind == Send || e.Kind == Receive) {
		f.errorf("ph", "want b and e for a message, which may overlap others, X for all else")
	}
	e.Rank, e.Start = int(f.int("pid", 0, maxNumber)), f.nanoseconds("ts", -maxMoment, maxMoment)
	args := f.in("args")
	number := func(key string) int { return int(args.int(key, 0, maxNumber)) }
	e.First, e.Last = args.processors("processors")
	switch e.Kind {
	case Agree, Plan, Compile, Check:
		return e
	case Wait, Settle, Send, Receive:
		e.Round, e.Port, e.Peer = number("round"), number("port"), number("rank")
		e.Partner, _ = args.processors("partner")
	case Code:
		e.Round = AfterRounds
		if coding {
			e.Round = number("round")
		}
	}
	e.Segment = number("segment")
	if _, ok := args.Find("bytes"); ok {
		e.Bytes = args.int("bytes", 0, maxAmount)
	}
	return e
}
