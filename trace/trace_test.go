package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"volley/trace"
)

// file is what a viewer reads.
type file struct {
	TraceEvents []struct {
		Name, Cat, Ph string
		Ts, Dur       float64
		Pid, Tid      int
		ID2           struct{ Local string }
		Args          map[string]any
	}
	DisplayTimeUnit string
}

func write(t *testing.T, r *trace.Recorder) (x file) {
	t.Helper()
	var b bytes.Buffer
	n, err := r.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("%d bytes, error %v: %d were written", n, err, b.Len())
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestWrite checks what viewers see of a few events, which came from another process.
func TestWrite(t *testing.T) {
	t.Parallel()
	there := []trace.Event{
		{Kind: trace.Code, Rank: 3, Row: trace.Pipeline1, Start: 1_000_002_500, Length: 1500, First: 6, Last: 7, Segment: 1, Round: 2},
		{Kind: trace.Send, Rank: 3, Row: trace.Messages, Start: 1_000_001_000, Length: 9000, First: 7, Last: 7, Round: 2, Port: 1, Peer: 0, Partner: 1, Bytes: 1},
		{Kind: trace.Code, Rank: 0, Row: trace.Pipeline0, Start: 1_000_000_000, Length: 10, First: 0, Last: 0, Round: trace.AfterRounds},
	}
	data, err := json.Marshal(there)
	if err != nil {
		t.Fatal(err)
	}
	var here []trace.Event
	if err := json.Unmarshal(data, &here); err != nil || !reflect.DeepEqual(here, there) {
		t.Fatalf("got %+v, error %v", here, err)
	}
	r := trace.New()
	r.Merge(here)
	x := write(t, r)
	names := map[string]string{}
	var spans []string
	for _, e := range x.TraceEvents {
		args, err := json.Marshal(e.Args)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join([]string{e.Ph, e.Name, string(args)}, " ")
		if e.Ph == "M" {
			if name, ok := e.Args["name"].(string); ok {
				names[name] = e.Name
			}
			continue
		}
		spans = append(spans, text)
	}
	wantNames := map[string]string{
		"rank 0 (processor 0)": "process_name", "rank 3 (processors 6–7)": "process_name",
		"pipeline 0": "thread_name", "pipeline 1": "thread_name",
	}
	if !reflect.DeepEqual(names, wantNames) {
		t.Errorf("names %v, want %v", names, wantNames)
	}
	want := []string{
		`X code {"processors":"processor 0","segment":0}`,
		`b send {"bytes":1,"partner":"processor 1","port":1,"processors":"processor 7","rank":0,"round":2,"segment":0}`,
		`e send null`,
		`X code round 2 {"processors":"processors 6–7","round":2,"segment":1}`,
	}
	if !reflect.DeepEqual(spans, want) {
		t.Errorf("spans %q, want %q", spans, want)
	}
	n := len(x.TraceEvents)
	if code := x.TraceEvents[n-1]; code.Ts != 2.5 || code.Dur != 1.5 || code.Pid != 3 || code.Tid != int(trace.Pipeline1) {
		t.Errorf("%+v", code)
	}
	if b, e := x.TraceEvents[n-3], x.TraceEvents[n-2]; b.Ts != 1 || e.Ts != 10 || b.ID2 != e.ID2 || b.ID2.Local == "" || b.Cat == "" || b.Cat != e.Cat || b.Pid != e.Pid {
		t.Errorf("%+v %+v", b, e)
	}
	if x.DisplayTimeUnit != "ms" {
		t.Errorf("unit %q", x.DisplayTimeUnit)
	}
}

// TestEmpty checks that a trace without events is a file all the same.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, r := range []*trace.Recorder{nil, trace.New()} {
		if x := write(t, r); x.TraceEvents == nil || len(x.TraceEvents) != 0 {
			t.Errorf("%+v", x)
		}
	}
}

// TestLength checks that an event ends when it is recorded, and that the earlier one comes
// first in a file, of equals that of the lower rank.
func TestLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := trace.New()
		began := r.Now()
		if want := time.Now().UnixNano(); began != want {
			t.Errorf("it is %d, want %d", began, want)
		}
		time.Sleep(time.Second)
		later := r.Now()
		time.Sleep(time.Second)
		r.End(trace.Event{Kind: trace.Read, Rank: 0, Start: later})
		r.End(trace.Event{Kind: trace.Read, Rank: 2, Start: began})
		r.End(trace.Event{Kind: trace.Read, Rank: 1, Start: began})
		var got []float64
		for _, e := range write(t, r).TraceEvents {
			if e.Ph == "X" {
				got = append(got, float64(e.Pid), e.Ts, e.Dur)
			}
		}
		if want := []float64{1, 0, 2e6, 2, 0, 2e6, 0, 1e6, 1e6}; !reflect.DeepEqual(got, want) {
			t.Errorf("ranks, begins and lengths %v, want %v", got, want)
		}
	})
}

func TestNil(t *testing.T) {
	var r *trace.Recorder
	if n := testing.AllocsPerRun(100, func() { r.End(trace.Event{Start: r.Now()}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	r.Merge([]trace.Event{{}})
	if r.Now() != 0 || r.Events() != nil {
		t.Error("it records")
	}
}

// TestConcurrent records in several goroutines at once.
func TestConcurrent(t *testing.T) {
	r := trace.New()
	var all sync.WaitGroup
	for rank := range 4 {
		all.Go(func() {
			for range 100 {
				r.End(trace.Event{Kind: trace.Read, Rank: rank, Start: r.Now()})
			}
		})
	}
	all.Wait()
	if n := len(r.Events()); n != 400 {
		t.Errorf("%d events", n)
	}
	if got, want := r.Since(390), r.Events()[390:]; !reflect.DeepEqual(got, want) || len(r.Since(400)) > 0 {
		t.Errorf("since: got %+v, want %+v", got, want)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	t.Parallel()
	if _, err := trace.New().WriteTo(full{}); !errors.Is(err, errFull) {
		t.Errorf("got error %v", err)
	}
}
