package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"volley"
	"volley/plan"
	"volley/sim"
)

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

// TestRun checks that runs are right, and that none ends before its longest message may be there.
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
				a, err := run(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				info := p.Info()
				if r := a.Report; !r.Verified || r.Processors != info.Processors || r.Segments != 1 || len(a.Model) != info.Rounds() {
					t.Errorf("report %+v, model %v", r, a.Model)
				}
				element := math.Ceil(float64(model.Symbols()) / float64(info.PieceCount()))
				for i, m := range a.Model {
					want := 0.0
					if m.Largest > 0 {
						want = model.Beta.Seconds() + float64(m.Largest)*element*float64(model.SymbolBytes)*float64(model.Tau)
					}
					if math.Abs(m.Seconds-want) > 1e-8 || m.Largest != a.Report.Rounds[i].Largest {
						t.Errorf("round %d: %+v, want %v s", i, m, want)
					}
					if pace != "" && a.Report.Seconds+1e-6 < m.Seconds {
						t.Errorf("round %d: %+v, and the run took %v s", i, m, a.Report.Seconds)
					}
				}
				if pace != "" && model.Beta != 2*time.Millisecond {
					t.Errorf("β is %v", model.Beta)
				}
			})
		}
	}
}

// TestRunAnswer checks what the page gets.
func TestRunAnswer(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	ok, err := Answer(t.Context(), "run", []byte(`{"flags":{"processors":"4","matrix":"random:1","size":"1KiB"},"size":"","pace":"0"}`), &b)
	if !ok || err != nil {
		t.Fatalf("%v %v %s", ok, err, b.String())
	}
	var last struct {
		Result struct {
			Command string
			Report  json.RawMessage
		}
	}
	if err := json.Unmarshal(b.Bytes(), &last); err != nil {
		t.Fatal(err)
	}
	if r, err := volley.ReadReport(bytes.NewReader(last.Result.Report)); err != nil || !r.Verified || r.PacketBytes != 1024 {
		t.Errorf("report %+v, error %v", r, err)
	}
	if want := "volley encode --model paper --matrix random:1 -k 4 -o coded 'packet.{rank}'"; last.Result.Command != want {
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
		_, err := run(t.Context(), runRequest{withFlags(c.flags), c.size, c.pace})
		var b bytes.Buffer
		request, marshalErr := json.Marshal(runRequest{withFlags(c.flags), c.size, c.pace})
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		if ok, answerErr := Answer(t.Context(), "run", request, &b); ok || answerErr != nil {
			t.Errorf("%+v: %s", c, b.String())
		}
		var l reply
		if err := json.Unmarshal(b.Bytes(), &l); err != nil || l.Error == nil {
			t.Fatalf("%s: %v", b.String(), err)
		}
		if err == nil || l.Error.Field != c.field || !strings.Contains(l.Error.Message, c.want) {
			t.Errorf("%s %s %s: got %+v, want %s: %s", c.flags, c.size, c.pace, l.Error, c.field, c.want)
		}
	}
}

// TestRunCancelled checks that a run ends where its context does, long before its messages would be there.
func TestRunCancelled(t *testing.T) {
	t.Parallel()
	request := runRequest{Flags: flags{"processors": "8", "ports": "7"}, Size: "1KiB", Pace: "55s"}
	gone := errors.New("gone")
	for _, after := range []time.Duration{0, 100 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			start := time.Now()
			time.AfterFunc(after, func() { cancel(gone) })
			if _, err := run(ctx, request); !errors.Is(err, gone) {
				t.Errorf("got error %v", err)
			}
			if d := time.Since(start); d > 50*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}
