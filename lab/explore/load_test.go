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
	"strings"
	"testing"

	"volley"
	"volley/field"
	"volley/internal/selection"
	"volley/matrix"
	"volley/plan"
	"volley/transport/local"
)

// encoded returns what volley encode of 4 processors prints with --json.
func encoded(t testing.TB, options ...volley.Option) string {
	t.Helper()
	const k, size = 4, 1000
	f := must(field.Parse("2^8"))(t)
	a := must(matrix.Random(f, k, k, 1))(t)
	e := must(volley.NewEncoder(t.Context(), a, append(options, volley.WithPaperModel(1, volley.DefaultBeta, volley.DefaultTau))...))(t)
	packets := make([]volley.Packet, k)
	for i := range packets {
		packets[i] = volley.Packet{Data: bytes.Repeat([]byte{byte(i)}, size), Result: new([]byte)}
	}
	report := must(e.Run(t.Context(), local.New(1)[0], packets...))(t)
	data := must(json.MarshalIndent(report, "", "  "))(t)
	return string(data) + "\n"
}

func loadText(text string, f flags) (*loaded, error) {
	return load(context.Background(), loadRequest{"out.json", text, f})
}

func TestLoadReport(t *testing.T) {
	t.Parallel()
	for _, options := range [][]volley.Option{nil, {volley.WithAlgorithm("exchange")}} {
		text := encoded(t, options...)
		x := must(loadText(text, flags{"beta": "1ms", "tau": "1us"}))(t)
		want := must(volley.ReadReport(strings.NewReader(text)))(t)
		if x.Kind != "report" || !reflect.DeepEqual(x.Report, want) || len(x.Model) != len(want.Rounds) {
			t.Fatalf("got %+v", x)
		}
		for i, r := range want.Rounds {
			seconds := 1e-3 + 1e-6*float64(r.Largest)*math.Ceil(1000/float64(max(1, want.Pieces)))
			if m := x.Model[i]; m.Largest != r.Largest || math.Abs(m.Seconds-seconds) > 1e-9 {
				t.Errorf("round %d: got %+v, want %v s", i, m, seconds)
			}
		}
	}
	x, err := loadText(`{"algorithm":"a","field":"2^8","k":1,"processors":2,"ports":1,"c1":1,"c2":1,"packet_bytes":1,"symbols_per_packet":1,"seconds":1,
		"rounds":[{"largest_message":0,"messages":0},{"largest_message":1,"messages":1}]}`, flags{"beta": "2s", "tau": "1s"})
	if want := []roundModel{{}, {3, 1}}; err != nil || !reflect.DeepEqual(x.Model, want) {
		t.Errorf("got %+v, error %v, want %+v", x, err, want)
	}
}

// TestLoadErrors refuses what is neither a report nor a plan; package volley tests what it refuses of a report.
func TestLoadErrors(t *testing.T) {
	t.Parallel()
	report := encoded(t)
	const neither = "want a report of volley encode"
	for _, c := range []struct{ text, want string }{
		{"", "out.json: line 1: unexpected end of JSON input"},
		{"\n[]\n", "out.json: line 2: want an object: " + neither},
		{strings.Replace(report, `"k": 4`, `"k": -4`, 1), "out.json: k: -4: want 1 to 2147483647: want a report"},
		{strings.Replace(report, `"2^8"`, `"2^99"`, 1), `out.json: field "2^99": `},
	} {
		_, err := loadText(c.text, nil)
		if f := new(selection.Error); !errors.As(err, &f) || f.Flag != "file" || !strings.HasPrefix(err.Error(), "out.json: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q…: got error %v, want %s", c.text, err, c.want)
		}
	}
	for name, want := range map[string]string{"": "the file: line 1: ", " a\n b\t": "a b: line 1: "} {
		if _, err := load(t.Context(), loadRequest{Name: name, Text: "x"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got error %v", name, err)
		}
	}
	if err := loadError(report, flags{"beta": "x"}); err == nil || !strings.Contains(err.Error(), "unit") {
		t.Errorf("--beta x: %v", err)
	}
}

// TestLoadPlan loads plans as volley plan prints them: they are shown as the plan of the flags is, whatever made them.
func TestLoadPlan(t *testing.T) {
	t.Parallel()
	for _, f := range []flags{{"processors": "9", "ports": "2", "matrix": "random:1"}, {"processors": "4", "algorithm": "exchange:4"}, {"processors": "10", "sinks": "4"}} {
		q := must(f.ask(t.Context()))(t)
		p := must(q.plan(t.Context()))(t)
		var b bytes.Buffer
		if err := plan.Encode(&b, p); err != nil {
			t.Fatal(err)
		}
		got, err := load(t.Context(), loadRequest{Name: "plan.json", Text: b.String()})
		if err != nil {
			t.Fatalf("%v: %v", f, err)
		}
		want := must(showPlan(t.Context(), planRequest{f}))(t)
		if got.Kind != "plan" || !reflect.DeepEqual(got.Plan.Detail, want.Detail) || !reflect.DeepEqual(got.Plan.Aggregate, want.Aggregate) {
			t.Errorf("%v: the plan of the file differs from the plan of the flags", f)
		}
		if !got.Plan.OwnMatrix {
			t.Errorf("%v: nothing says that A is what the plan computes", f)
		}
		for name, wrong := range map[string]bool{cmp.Or(f["matrix"], "cauchy"): false, "random:99": true} {
			got, err := load(t.Context(), loadRequest{Name: "plan.json", Text: b.String(), Flags: flags{"matrix": name}})
			if err != nil {
				t.Fatalf("%v: %v", f, err)
			}
			if got.Plan.OwnMatrix || (len(got.Plan.Detail.Mismatches) > 0) != wrong {
				t.Errorf("%v: compared with %s: %d mismatches", f, name, len(got.Plan.Detail.Mismatches))
			}
		}
		if fault := new(selection.Error); !errors.As(loadError(b.String(), flags{"matrix": "nosuch"}), &fault) || fault.Flag != "matrix" {
			t.Errorf("%v: compared with no matrix: %v", f, fault)
		}
		if c := got.Plan.Cost; c.C1 != want.Cost.C1 || c.PacketsC2 != want.Cost.PacketsC2 || c.C3 != want.Cost.C3 || c.BoundC1 != want.Cost.BoundC1 || c.BoundC2 != want.Cost.BoundC2 || !reflect.DeepEqual(c.Times, want.Cost.Times) {
			t.Errorf("%v: costs %+v, want %+v", f, c, want.Cost)
		}
		text := b.String()
		for _, broken := range []string{text[:len(text)/2], strings.Replace(text, `"dst":1`, `"dst":99`, 1), text + strings.Repeat(" ", mostPlan)} {
			if _, err := load(t.Context(), loadRequest{Name: "plan.json", Text: broken}); err == nil || !strings.Contains(err.Error(), "plan.json: ") {
				t.Errorf("%v: a broken plan: %v", f, err)
			}
		}
	}
}

func loadError(text string, f flags) error {
	_, err := loadText(text, f)
	return err
}

// TestLoadManifest loads manifests as volley encode writes them: A has the points and the entries that it had.
func TestLoadManifest(t *testing.T) {
	t.Parallel()
	values := func(of ...int) string {
		texts := make([]string, len(of))
		for i, v := range of {
			texts[i] = fmt.Sprintf("%q", fmt.Sprint(v))
		}
		return strings.Join(texts, ",")
	}
	entry := func(name string, k int) string {
		return fmt.Sprintf(`{"name":"%s%d","processor":%d,"bytes":1,"sha256":"%064d"}`, name, k, k, 0)
	}
	manifest := func(matrix string) string {
		return `{"format":"volley-manifest","version":1,"field":"7","processors":3,"symbol_bytes":1,"symbols_per_packet":1,"matrix":` + matrix +
			`,"files":[` + entry("coded.", 0) + "," + entry("coded.", 1) + "," + entry("coded.", 2) + `],"inputs":[` + entry("in.", 0) + "," + entry("in.", 1) + "," + entry("in.", 2) + "]}"
	}
	for text, want := range map[string][][]string{
		`{"family":"vandermonde","inverse":false,"points":[{"name":"alpha","values":[` + values(2, 5, 3) + `]}]}`:                           {{"1", "1", "1"}, {"2", "5", "3"}, {"4", "4", "2"}},
		`{"family":"file:A.csv","inverse":false,"entries":[[` + values(1, 2, 3) + `],[` + values(0, 1, 4) + `],[` + values(5, 6, 0) + `]]}`: {{"1", "2", "3"}, {"0", "1", "4"}, {"5", "6", "0"}},
	} {
		got, err := load(t.Context(), loadRequest{Name: "manifest.json", Text: manifest(text)})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got.Kind != "plan" || got.Plan.OwnMatrix || !reflect.DeepEqual(got.Plan.Detail.Matrix, want) || len(got.Plan.Detail.Mismatches) > 0 {
			t.Errorf("%s: A = %v, want %v; mismatches %v", text, got.Plan.Detail.Matrix, want, got.Plan.Detail.Mismatches)
		}
	}
	if err := loadError(strings.Replace(manifest("{}"), `"processors":3`, `"processors":100000`, 1), nil); err == nil || !strings.Contains(err.Error(), "1024 at most") {
		t.Errorf("100000 processors: %v", err)
	}
}
