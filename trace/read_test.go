package trace_test

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"volley/files"
	"volley/internal/fuzzlimit"
	"volley/trace"
)

// all is an event of each kind, in the order in which they begin.
func all(start int64) []trace.Event {
	events := []trace.Event{
		{Kind: trace.Agree, First: 0, Last: 3, Length: 12_345},
		{Kind: trace.Plan, Last: 3, Length: 1},
		{Kind: trace.Compile, Last: 3},
		{Kind: trace.Turn, Row: trace.Pipeline1, Last: 3, Segment: 1, Length: 2},
		{Kind: trace.Read, Row: trace.Pipeline0, Last: 3, Segment: 2, Length: 3, Bytes: 1 << 40},
		{Kind: trace.Code, Row: trace.Pipeline0, Last: 3, Round: 0, Length: 4},
		{Kind: trace.Code, Rank: 1, Row: trace.Pipeline0, First: 4, Last: 7, Round: 12, Length: 4},
		{Kind: trace.Send, Rank: 1, Row: trace.Messages, First: 5, Last: 5, Segment: 3, Round: 2, Port: 1, Peer: 7, Partner: 30, Bytes: 99, Length: 1_000_000_007},
		{Kind: trace.Receive, Rank: 1, Row: trace.Messages, First: 5, Last: 5, Segment: 3, Round: 2, Port: 1, Peer: 7, Partner: 30, Bytes: 99},
		{Kind: trace.Wait, Rank: 1, Row: trace.Pipeline1, First: 4, Last: 4, Round: 2, Peer: 2, Partner: 9, Bytes: 1, Length: 5},
		{Kind: trace.Settle, Rank: 1, Row: trace.Pipeline1, First: 4, Last: 4, Round: 2, Peer: 2, Partner: 9, Bytes: 1, Length: 6},
		{Kind: trace.Code, Row: trace.Pipeline0, Last: 3, Round: trace.AfterRounds, Length: 7},
		{Kind: trace.Observe, Row: trace.Pipeline0, Last: 3, Length: 8},
		{Kind: trace.Write, Row: trace.Pipeline1, Last: 3, Length: 9},
		{Kind: trace.Check, Last: 3, Length: 10},
	}
	for i := range events {
		events[i].Start = start + int64(i)*1_234_567
	}
	return events
}

func written(t testing.TB, events []trace.Event) []byte {
	t.Helper()
	r := trace.New()
	r.Merge(events)
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadEvents checks that what was written is read to the nanosecond, also where a tool
// has added to it.
func TestReadEvents(t *testing.T) {
	t.Parallel()
	text := string(written(t, all(1_700_000_000_123_456_789)))
	for name, text := range map[string]string{
		"as written": text,
		"with keys": strings.NewReplacer(`{"name"`, `{"bind_id":[{}],"name"`, `"displayTimeUnit"`, `"metadata":{"a":[1]},"displayTimeUnit"`,
			`"processors":`, `"note":null,"processors":`).Replace(text),
		"on one line":     strings.ReplaceAll(text, "\n", " "),
		"on many":         strings.ReplaceAll(text, ",", "\r\n,\r\n"),
		"on another time": strings.Replace(text, `"ts":0,`, `"ts":-0.000,`, 1),
	} {
		got, err := trace.ReadEvents(strings.NewReader(text))
		if want := all(0); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, error %v, want %+v", name, got, err, want)
		}
	}
	if got, err := trace.ReadEvents(bytes.NewReader(written(t, nil))); len(got) != 0 || err != nil {
		t.Errorf("without events: got %+v, error %v", got, err)
	}
}

func TestReadEventsErrors(t *testing.T) {
	t.Parallel()
	const span = `{"name":"read","ph":"X","ts":1.5,"dur":2,"pid":0,"tid":1,"args":{"processors":"processors 0–3","segment":0,"bytes":5}}`
	const begin = `{"name":"send","cat":"message","ph":"b","ts":1,"pid":1,"tid":0,"id2":{"local":"7"},"args":{"processors":"processor 1","partner":"processor 2","rank":2,"port":0,"round":0,"segment":0}}`
	const end = `{"name":"send","cat":"message","ph":"e","ts":3,"pid":1,"tid":0,"id2":{"local":"7"}}`
	file := func(records ...string) string {
		return "{\"traceEvents\":[\n" + strings.Join(records, ",\n") + "\n]}\n"
	}
	if _, err := trace.ReadEvents(strings.NewReader(file(span, begin, end))); err != nil {
		t.Fatal(err)
	}
	changed := func(record, old, new string) string {
		t.Helper()
		if !strings.Contains(record, old) {
			t.Fatalf("%s is not in %s", old, record)
		}
		return file(span, strings.Replace(record, old, new, 1), end)
	}
	const at = "line 3: traceEvents[1]"
	for _, c := range []struct{ text, want string }{
		{"", "line 1: unexpected end of JSON input"},
		{file(span, begin)[:200], "line 3: unexpected end of JSON input"},
		{file(span, begin+"]"), "line 4: invalid character ']' after object key:value pair"},
		{"[]", "line 1: want an object"},
		{`{"c1":3}`, "line 1: traceEvents is missing"},
		{`{"traceEvents":{}}`, "line 1: traceEvents: want a list"},
		{file("5"), "line 2: traceEvents[0]: want an object"},
		{"{\"traceEvents\":[\n5,\n" + span[:5], "line 3: unexpected end of JSON input"},
		{changed(span, `"ph":"X"`, `"ph":"B"`), at + `: ph: "B": want X, b, e or M`},
		{changed(span, `"ph":"X",`, ``), at + `: ph: "": want X, b, e or M`},
		{changed(span, `"ph":"X"`, `"ph":7`), at + `: ph: number does not fit there`},
		{changed(span, `"name":"read",`, ``), at + `: name: "": a run of volley has no such span`},
		{changed(span, `"name":"read"`, `"name":"reed"`), at + `: name: "reed": a run of volley has no such span`},
		{changed(span, `"name":"read"`, `"name":"code round 3"`), at + `: args.round is missing`},
		{changed(span, `"name":"read"`, `"name":"wait"`), at + `: args.partner: "": want processor 3, or processors 4–7`},
		{changed(span, `"name":"read"`, `"name":"receive"`), at + `: ph: want b and e for a message, which may overlap others, X for all else`},
		{changed(begin, `"name":"send"`, `"name":"write"`), at + `: ph: want b and e for a message, which may overlap others, X for all else`},
		{changed(span, `"dur":2`, `"dur":-2`), at + `: dur: -2: want a number from 0 to 1e+12`},
		{changed(span, `"dur":2,`, ``), at + `: dur is missing`},
		{changed(span, `"ts":1.5`, `"ts":"1.5"`), at + `: ts: string does not fit there`},
		{changed(span, `"ts":1.5`, `"ts":1e300`), at + `: ts: 1e+300: want a number from -4e+15 to 4e+15`},
		{changed(span, `"pid":0`, `"pid":-1`), at + `: pid: -1: want 0 to 2147483647`},
		{changed(span, `"pid":0`, `"pid":0.5`), at + `: pid: number 0.5 does not fit there`},
		{changed(span, `"tid":1`, `"tid":5`), at + `: tid: 5: want 0 to 2`},
		{changed(span, `"args":`, `"arg":`), at + `: args is missing`},
		{changed(span, `processors 0–3`, `processors 3–0`), at + `: args.processors: "processors 3–0": want processor 3, or processors 4–7`},
		{changed(span, `processors 0–3`, `processor -1`), at + `: args.processors: "processor -1": want processor 3, or processors 4–7`},
		{changed(span, `"bytes":5`, `"bytes":-5`), at + `: args.bytes: -5: want 0 to 1152921504606846976`},
		{changed(span, `"segment":0`, `"segment":null`), at + `: args.segment is missing`},
		{changed(begin, `"rank":2`, `"rank":99999999999`), at + `: args.rank: 99999999999: want 0 to 2147483647`},
		{changed(begin, `"processor 2"`, `"2"`), at + `: args.partner: "2": want processor 3, or processors 4–7`},
		{changed(begin, `"id2":{"local":"7"},`, ``), at + `: id2 is missing`},
		{changed(begin, `"7"`, `"8"`), `line 4: traceEvents[2]: id2: "7": no message of that id has begun at rank 1`},
		{changed(begin, `"ts":1`, `"ts":4`), `line 4: traceEvents[2]: ts: the message ends -1µs after it has begun: want 0 to 277h46m40s`},
		{file(begin, begin), `line 3: traceEvents[1]: id2: "7": the message of that id before it has no end`},
		{file(span, begin), `the message of id2 "7" at rank 1 has no end, an event of ph e`},
	} {
		_, err := trace.ReadEvents(strings.NewReader(c.text))
		if wrong := new(files.FormatError); !errors.As(err, &wrong) || err.Error() != c.want {
			t.Errorf("%s\ngot error %v\nwant      %s", c.text, err, c.want)
		}
	}
	if _, err := trace.ReadEvents(iotest.ErrReader(errFull)); !errors.Is(err, errFull) {
		t.Errorf("got error %v", err)
	}
}

// FuzzReadEvents checks that what is read from anything is a trace: it is written and read
// again as it is.
func FuzzReadEvents(f *testing.F) {
	text := written(f, all(0))
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add(bytes.ReplaceAll(text, []byte(`:1`), []byte(`:-1`)))
	f.Add([]byte(`{"traceEvents":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzlimit.Hold(t, len(text))()
		events, err := trace.ReadEvents(bytes.NewReader(text))
		if err != nil {
			if wrong := new(files.FormatError); !errors.As(err, &wrong) || wrong.Line < 0 || wrong.Line > 1+bytes.Count(text, []byte("\n")) || len(events) > 0 {
				t.Fatalf("error %v", err)
			}
			return
		}
		end := int64(0)
		for _, e := range events {
			if e.Start < 0 || e.Length < 0 || e.Start > math.MaxInt64-e.Length {
				t.Fatalf("%+v", e)
			}
			end = max(end, e.Start+e.Length)
		}
		again, err := trace.ReadEvents(bytes.NewReader(written(t, events)))
		if err != nil || len(again) != len(events) {
			t.Fatalf("%d events, read again %d, error %v", len(events), len(again), err)
		}
		if end < 1<<50 && !reflect.DeepEqual(sorted(again), sorted(events)) { // exact in µs as a float64
			t.Fatalf("got %+v, want %+v", again, events)
		}
	})
}

// sorted returns the events in the order in which they are written.
func sorted(events []trace.Event) []trace.Event {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b trace.Event) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Rank, b.Rank)) })
	return events
}
