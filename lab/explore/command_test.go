package explore_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"volley/internal/cli"
	"volley/lab/explore"
	// It makes the command line that of volley-lab.
	_ "volley/lab/verbs"
)

// A shownPlan is what the page shows of a plan.
type shownPlan struct {
	Command string
	Info    struct {
		Algorithm, Parameters, Field             string
		Processors, Ports, Rows, Columns, Pieces int
	}
	Messages []any
	Detail   struct{ Matrix any } // of what it computes
}

// answered returns the answer of the page's engine, or false where it is an error.
func answered(t *testing.T, method string, question any) (shown shownPlan, ok bool) {
	t.Helper()
	request, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if ok, err = explore.Answer(t.Context(), method, request, &answer); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer.Bytes(), &struct{ Result *shownPlan }{&shown}); err != nil {
		t.Fatal(err)
	}
	return shown, ok
}

// TestCommands runs the commands that the page prints beside a hundred plans: each prints the plan that is shown.
func TestCommands(t *testing.T) {
	t.Parallel()
	values := []struct {
		flag  string
		texts []string // "" is the default, as often as it stands there
	}{
		{"processors", []string{"2", "5", "7", "8", "9", "12", "16"}},
		{"ports", []string{"", "", "2", "3"}},
		{"field", []string{"", "257", "2^16", "goldilocks", "bn254"}},
		{"matrix", []string{"", "", "dft", "random:1", "lagrange", "vandermonde"}},
		{"algorithm", []string{"", "", "", "universal", "windows", "direct", "central", "dft-shifts", "ring-allgather", "exchange", "dft"}},
		{"order", []string{"", "", "any", "reversed"}},
		{"inverse", []string{"", "", "true", "false", "0"}},
		{"sinks", []string{"", "", "", "3"}},
		{"separate", []string{"", "", "true"}},
		{"model", []string{"", "", "paper", "network"}},
		{"network", []string{"", "", "wan"}},
		{"size", []string{"", "1KiB", "64MiB"}},
		{"gamma", []string{"", "", "1ns"}},
		{"whole", []string{"", "", "true"}},
		{"rounds-over", []string{"", "", "0", "1"}},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for shown := 0; shown < 100; {
		flags := map[string]string{}
		for _, v := range values {
			flags[v.flag] = v.texts[random.IntN(len(v.texts))]
		}
		page, ok := answered(t, "plan", map[string]any{"flags": flags})
		if !ok {
			continue // the page has no plan either
		}
		shown++
		var stdout, stderr strings.Builder
		words := strings.Fields(page.Command)
		if code := cli.Main(append(words[1:], "--format", "json"), &stdout, &stderr); words[0] != "volley-lab" || code != 0 {
			t.Errorf("%s: exit %d, %s", page.Command, code, stderr.String())
			continue
		}
		printed, _ := answered(t, "load", map[string]any{"text": stdout.String(), "flags": map[string]string{}})
		printed.Command = page.Command
		if !reflect.DeepEqual(printed, page) {
			t.Errorf("%s prints %+v, and the page shows %+v, with other messages or another matrix if this is the same", page.Command, printed.Info, page.Info)
		}
	}
}
