package explore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"volley/internal/selection"
	"volley/plan"
)

func loadText(text string, f flags) (*planAnswer, error) {
	return load(context.Background(), loadRequest{"out.json", text, f})
}

// planText returns what volley plan prints as JSON.
func planText(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	p := must(must(flags{"processors": "4"}.ask(t.Context()))(t).plan(t.Context()))(t)
	if err := plan.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestLoadErrors refuses what is no plan; packages plan and manifest test what they refuse.
func TestLoadErrors(t *testing.T) {
	t.Parallel()
	const want = "want a plan of volley plan, as JSON, or a manifest"
	for _, text := range []string{"", "\n[]\n", `{"algorithm":"a"}`, strings.Replace(planText(t), `"2^8"`, `"2^99"`, 1)} {
		_, err := loadText(text, nil)
		if f := new(selection.Error); !errors.As(err, &f) || f.Flag != "file" || !strings.HasPrefix(err.Error(), "out.json: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q…: got error %v, want %s", text, err, want)
		}
	}
	for name, want := range map[string]string{"": "the file: ", " a\n b\t": "a b: "} {
		if _, err := load(t.Context(), loadRequest{Name: name, Text: "x"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got error %v", name, err)
		}
	}
	if err := loadError(planText(t), flags{"beta": "x"}); err == nil || !strings.Contains(err.Error(), "unit") {
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
		if !reflect.DeepEqual(got.Detail, want.Detail) || !reflect.DeepEqual(got.Aggregate, want.Aggregate) {
			t.Errorf("%v: the plan of the file differs from the plan of the flags", f)
		}
		if !got.OwnMatrix {
			t.Errorf("%v: nothing says that A is what the plan computes", f)
		}
		for name, wrong := range map[string]bool{cmp.Or(f["matrix"], "cauchy"): false, "random:99": true} {
			got, err := load(t.Context(), loadRequest{Name: "plan.json", Text: b.String(), Flags: flags{"matrix": name}})
			if err != nil {
				t.Fatalf("%v: %v", f, err)
			}
			if got.OwnMatrix || (len(got.Detail.Mismatches) > 0) != wrong {
				t.Errorf("%v: compared with %s: %d mismatches", f, name, len(got.Detail.Mismatches))
			}
		}
		if fault := new(selection.Error); !errors.As(loadError(b.String(), flags{"matrix": "nosuch"}), &fault) || fault.Flag != "matrix" {
			t.Errorf("%v: compared with no matrix: %v", f, fault)
		}
		if c := got.Cost; c.C1 != want.Cost.C1 || c.PacketsC2 != want.Cost.PacketsC2 || c.C3 != want.Cost.C3 || !reflect.DeepEqual(c.Universal, want.Cost.Universal) || !reflect.DeepEqual(c.Times, want.Cost.Times) {
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
		if got.OwnMatrix || !reflect.DeepEqual(got.Detail.Matrix, want) || len(got.Detail.Mismatches) > 0 {
			t.Errorf("%s: A = %v, want %v; mismatches %v", text, got.Detail.Matrix, want, got.Detail.Mismatches)
		}
	}
	if err := loadError(strings.Replace(manifest("{}"), `"processors":3`, `"processors":100000`, 1), nil); err == nil || !strings.Contains(err.Error(), "1024 at most") {
		t.Errorf("100000 processors: %v", err)
	}
}
