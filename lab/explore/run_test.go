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
	r := must(request.prepare(t.Context()))(t)
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
				a := must(run(t.Context(), request))(t)
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
			Report  volley.Report
		}
	}
	if err := json.Unmarshal(b.Bytes(), &last); err != nil {
		t.Fatal(err)
	}
	if r := last.Result.Report; !r.Verified || r.PacketBytes != 1024 {
		t.Errorf("report %+v", r)
	}
	if want := "volley-lab encode --model paper --matrix random:1 -k 4 -o coded 'packet.{rank}'"; last.Result.Command != want {
		t.Errorf("command %s, want %s", last.Result.Command, want)
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
