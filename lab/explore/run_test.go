package explore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"volley"
	"volley/plan"
	"volley/sim"
	"volley/trace"
)

// runEvents are what a run says.
type runEvents struct {
	start *runStart
	spans []span
}

func (e *runEvents) take(t *testing.T) func(any) error {
	return func(event any) error {
		x := event.(runEvent)
		if (x.Start != nil) != (e.start == nil) {
			t.Errorf("an event %+v, the start being %+v", x, e.start)
		}
		if x.Start != nil {
			e.start = x.Start
		}
		e.spans = append(e.spans, x.Spans...)
		return nil
	}
}

func withFlags(text string) flags {
	f := flags{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		f[name] = value
	}
	return f
}

// planOf returns the plan of a request.
func planOf(t *testing.T, request runRequest) (plan.Plan, sim.Model) {
	t.Helper()
	r, err := request.prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.plan, r.model
}

// checkSpans checks that there is each message of the plan, for every segment, at both ends,
// and at every processor the coding of each round in which it sends.
func checkSpans(t *testing.T, p plan.Plan, report *volley.Report, spans []span, bytes func(count int) int64) {
	t.Helper()
	type message struct{ kind, src, dst, round, port, segment int }
	want, got := map[message]int64{}, map[message]int64{}
	n := p.Info().Processors
	for proc := range n {
		for round, x := range p.Schedule(proc).Rounds {
			for _, s := range x.Sends {
				for kind := range 4 {
					for segment := range report.Segments {
						want[message{kind, proc, s.Dst, round, s.Port, segment}] = bytes(len(s.Slots))
					}
				}
			}
		}
	}
	kinds := []trace.Kind{trace.Send, trace.Settle, trace.Receive, trace.Wait}
	type code struct{ rank, segment, round int }
	coded := map[code]int{}
	for _, s := range spans {
		if s.Kind == trace.Code {
			coded[code{s.Rank, s.Segment, s.Round}]++
		}
		kind := slices.Index(kinds, s.Kind)
		if kind < 0 {
			continue
		}
		m := message{kind, s.First, s.Partner, s.Round, s.Port, s.Segment}
		if kind >= 2 {
			m.src, m.dst = m.dst, m.src
		}
		got[m] += s.Bytes
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("messages %v, want %v", got, want)
	}
	for rank := range n {
		for segment := range report.Segments {
			for round, x := range p.Schedule(rank).Rounds {
				if c := coded[code{rank, segment, round}]; c > len(x.Sends) || c < min(1, len(x.Sends)) {
					t.Errorf("rank %d: round %d of segment %d is coded %d times", rank, round, segment, c)
				}
			}
			if c := coded[code{rank, segment, trace.AfterRounds}]; c != 1 {
				t.Errorf("rank %d: the end of segment %d is coded %d times", rank, segment, c)
			}
		}
	}
}

// TestRun checks that runs are right, and that their spans are all messages and rounds of the
// plan.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"processors=4", "processors=8", "processors=8 ports=2", "processors=8 field=257 matrix=dft", "processors=8 field=257 matrix=dft order=reversed",
		"processors=4 field=goldilocks matrix=random:1 ports=2", "processors=8 sinks=3", "processors=8 sinks=3 separate=true", "processors=4 sinks=6 separate=true",
		"processors=8 algorithm=exchange", "processors=4 algorithm=bruck-allgather", "processors=4 algorithm=prepare-and-shoot field=bn254", "processors=1", "processors=2",
	} {
		for _, pace := range []string{"", "2ms"} {
			t.Run(text+" "+pace, func(t *testing.T) {
				t.Parallel()
				request := runRequest{Flags: withFlags(text), Size: "20KB", Pace: pace}
				p, model := planOf(t, request)
				var events runEvents
				a, err := run(t.Context(), request, events.take(t))
				if err != nil {
					t.Fatal(err)
				}
				info := p.Info()
				if s := events.start; s == nil || s.Processors != info.Processors || s.Ports != info.Ports || s.Algorithm != info.Algorithm ||
					s.Parameters != info.Parameters || s.Rounds != info.Rounds() || len(s.Phases) != len(info.Phases) || s.PacketBytes != a.Report.PacketBytes || len(s.Model) != s.Rounds {
					t.Errorf("start %+v, plan %+v", s, info)
				}
				if r := a.Report; !r.Verified || r.Processors != info.Processors || r.Segments != 1 {
					t.Errorf("report %+v", r)
				}
				element := math.Ceil(float64(model.Symbols()) / float64(info.PieceCount()))
				for i, m := range events.start.Model {
					want := 0.0
					if m.Largest > 0 {
						want = model.Beta.Seconds() + float64(m.Largest)*element*float64(model.SymbolBytes)*float64(model.Tau)
					}
					if math.Abs(m.Seconds-want) > 1e-8 || m.Largest != a.Report.Rounds[i].Largest {
						t.Errorf("round %d: %+v, want %v s", i, m, want)
					}
				}
				if pace != "" && model.Beta != 2*time.Millisecond {
					t.Errorf("β is %v", model.Beta)
				}
				if x := a.Run; x.Ranks != info.Processors || len(x.Processors) != x.Ranks || x.Rounds != info.Rounds() || len(x.Spans) != len(events.spans) {
					t.Errorf("%d ranks, %d rounds, %d spans, and %d in events", x.Ranks, x.Rounds, len(x.Spans), len(events.spans))
				}
				for rank, hosted := range a.Run.Processors {
					if hosted != [2]int{rank, rank} {
						t.Errorf("rank %d: processors %v", rank, hosted)
					}
				}
				if !slices.IsSortedFunc(a.Run.Spans, func(a, b span) int { return cmp.Compare(a.Start, b.Start) }) {
					t.Error("the spans are not sorted")
				}
				for _, s := range a.Run.Spans {
					if s.Start < 0 || s.Length < 0 || s.Start+s.Length > a.Run.Seconds {
						t.Errorf("a run of %v s: %+v", a.Run.Seconds, s)
					}
					if pace != "" && s.Kind == trace.Send && s.Length < model.Beta.Seconds() {
						t.Errorf("a message took less than %v: %+v", model.Beta, s)
					}
				}
				if info.PieceCount() > 1 { // elements are filled up
					return
				}
				checkSpans(t, p, a.Report, a.Run.Spans, func(count int) int64 { return int64(count) * a.Report.PacketBytes })
			})
		}
	}
}

// TestRunInSegments checks a run on packets that are cut, in which two segments are under way.
func TestRunInSegments(t *testing.T) {
	t.Parallel()
	request := runRequest{Flags: flags{"processors": "4"}, Size: "9MiB", Pace: "1ms"}
	p, _ := planOf(t, request)
	a, err := run(t.Context(), request, func(any) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if !a.Report.Verified || a.Report.Segments < 2 {
		t.Fatalf("report %+v", a.Report)
	}
	sizes := map[int]int64{}
	for _, s := range a.Run.Spans {
		if s.Kind == trace.Read {
			sizes[s.Segment] = s.Bytes
		}
	}
	whole := int64(0)
	for _, n := range sizes {
		whole += n
	}
	if whole != a.Report.PacketBytes {
		t.Errorf("segments of %v bytes", sizes)
	}
	if sizes[0] != sizes[a.Report.Segments-1] {
		return // as few as possible; else of one size, and checked whole
	}
	checkSpans(t, p, a.Report, a.Run.Spans, func(count int) int64 { return int64(count) * sizes[0] })
}

// TestRunAnswer checks the lines that the page gets.
func TestRunAnswer(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	ok, err := Answer(t.Context(), "run", []byte(`{"flags":{"processors":"4","matrix":"random:1","size":"1KiB"},"size":"","pace":"0"}`), &b)
	if !ok || err != nil {
		t.Fatalf("%v %v %s", ok, err, b.String())
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], `{"event":{"start":{"processors":4,`) || !strings.HasPrefix(lines[1], `{"event":{"spans":[{"kind":"`) {
		t.Errorf("lines %.300q", lines)
	}
	var last struct {
		Result struct {
			Command string
			Report  json.RawMessage
			Run     timeline
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if r, err := volley.ReadReport(bytes.NewReader(last.Result.Report)); err != nil || !r.Verified || r.PacketBytes != 1024 {
		t.Errorf("report %+v, error %v", r, err)
	}
	if want := "volley encode --model paper --matrix random:1 -k 4 -o coded --trace trace.json 'packet.{rank}'"; last.Result.Command != want {
		t.Errorf("command %s, want %s", last.Result.Command, want)
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flags, size, pace, field, want string }{
		{"", "1KiB", "", "processors", "0 processors"},
		{"processors=65", "1KiB", "", "processors", "65 processors: runs here have 64 at most; volley encode takes more"},
		{"processors=60 sinks=5 separate=true", "1KiB", "", "processors", "65 processors"},
		{"processors=4 ports=x", "1KiB", "", "ports", `"x": want a whole number`},
		{"processors=4 ports=0", "1KiB", "", "ports", "0 ports: want 1 or more"},
		{"processors=4 field=6", "1KiB", "", "field", "6 = 2·3 is no prime power"},
		{"processors=4 matrix=none", "1KiB", "", "matrix", "none"},
		{"processors=4 algorithm=none", "1KiB", "", "algorithm", "none"},
		{"processors=4 algorithm=dft", "1KiB", "", "algorithm", "dft"},
		{"processors=4 beta=x", "1KiB", "", "beta", "want a number and its unit"},
		{"processors=4 max-memory=1", "1KiB", "", "max-memory", ""},
		{"processors=4 addr=1", "1KiB", "", "addr", "there is no flag --addr here"},
		{"processors=4", "x", "", "size", "want a size such as 64MiB"},
		{"processors=4", "0", "", "size", "packets of no bytes: want 1B or more"},
		{"processors=4", "17MiB", "", "size", "packets have 16 MiB at most here"},
		{"processors=4 field=257", "16MiB", "", "size", "packets have 16 MiB at most here"},
		{"processors=64", "3MiB", "", "size", "64 packets of that size have more than 128 MiB together"},
		{"processors=4", "1KiB", "soon", "pace", "want a number and its unit"},
		{"processors=4", "1KiB", "-1s", "pace", "want a number and its unit"},
		{"processors=4", "1KiB", "59s", "pace", "the messages would take 2m"},
		{"processors=4 beta=1us tau=1ms", "1MiB", "1us", "pace", "want a smaller one"},
		{"processors=4 beta=0", "1KiB", "1s", "pace", "β is 0"},
	} {
		_, err := run(t.Context(), runRequest{withFlags(c.flags), c.size, c.pace}, func(any) error { t.Error("it begins"); return nil })
		var b bytes.Buffer
		request, marshalErr := json.Marshal(runRequest{withFlags(c.flags), c.size, c.pace})
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		if ok, answerErr := Answer(t.Context(), "run", request, &b); ok || answerErr != nil {
			t.Errorf("%+v: %s", c, b.String())
		}
		var l line
		if err := json.Unmarshal(b.Bytes(), &l); err != nil || l.Error == nil {
			t.Fatalf("%s: %v", b.String(), err)
		}
		if err == nil || l.Error.Field != c.field || !strings.Contains(l.Error.Message, c.want) {
			t.Errorf("%s %s %s: got %+v, want %s: %s", c.flags, c.size, c.pace, l.Error, c.field, c.want)
		}
	}
}

// TestRunCancelled checks that a run ends where its context does, and where nobody listens,
// long before its messages would be there.
func TestRunCancelled(t *testing.T) {
	t.Parallel()
	request := runRequest{Flags: flags{"processors": "8", "ports": "7"}, Size: "1KiB", Pace: "55s"}
	gone := errors.New("gone")
	for _, began := range []bool{true, false} {
		for _, cancels := range []bool{true, false} {
			t.Run(fmt.Sprintf("began %v, cancels %v", began, cancels), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				start := time.Now()
				_, err := run(ctx, request, func(event any) error {
					if began == (event.(runEvent).Start != nil) {
						return nil
					}
					if cancels {
						cancel(gone)
						return nil
					}
					return gone
				})
				if !errors.Is(err, gone) {
					t.Errorf("got error %v", err)
				}
				if d := time.Since(start); d > 50*time.Second {
					t.Errorf("it took %v", d)
				}
			})
		}
	}
}

// TestSpans checks times and what a timeline tells of ranks.
func TestSpans(t *testing.T) {
	t.Parallel()
	spans := spansOf([]trace.Event{
		{Kind: trace.Code, Rank: 1, Start: 3e9, Length: 5e8, First: 2, Last: 3, Round: 2},
		{Kind: trace.Send, Rank: 0, Start: 2e9, Length: 25e7, First: 1, Last: 1, Peer: 2, Partner: 7, Round: 4},
	}, 1e9)
	if spans[0].Start != 2 || spans[0].Length != 0.5 || spans[1].Start != 1 {
		t.Errorf("spans %+v", spans)
	}
	x := timelineOf(spans)
	if x.Seconds != 2.5 || x.Rounds != 5 || x.Ranks != 3 || fmt.Sprint(x.Processors) != "[[1 1] [2 3] [7 7]]" || x.Spans[0].Kind != trace.Send {
		t.Errorf("timeline %+v", x)
	}
	if x := timelineOf(spans[1:]); x.Rounds != 3 {
		t.Errorf("%d rounds with code for round 2", x.Rounds)
	}
}
