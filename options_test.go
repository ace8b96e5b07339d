package volley_test

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"volley"
	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix/matrixtest"
	"volley/sim"
)

func TestOptionsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		field string
		opt   volley.Option
		text  string // of the error, "" where there is none
	}{
		{"2^8", volley.WithNetwork(sim.Network{}), "network without times"},
		{"2^8", volley.WithPaperModel(0, 0, 0), "0 ports: want 1 or more"},
		{"2^8", volley.WithPaperModel(-3, 0, 0), "-3 ports: want 1 or more"},
		{"2^8", volley.WithAlgorithm("magic"), `no algorithm "magic"`},
		{"2^8", volley.WithAlgorithm(""), `no algorithm ""`},
		{"2^8", volley.WithPaperModel(1, -1, 0), "β = -1ns: want 0 or more"},
		{"2^8", volley.WithPaperModel(1, 0, -0.5), "τ = -500 ms/B: want"},
		{"2^8", volley.WithPaperModel(1, 0, sim.PerByte(math.NaN())), "τ = NaN s/B: want"},
		{"2^8", volley.WithPaperModel(1, 0, sim.PerByte(math.Inf(1))), "τ = +Inf s/B: want"},
		{"2^8", volley.WithMemory(0), "0 bytes of memory: want 1 or more"},
		{"2^8", volley.WithTimeout(-time.Second), "timeout -1s: want 0 or more"},
		{"2^8", volley.WithPaperModel(math.MaxInt, 0, 0), ""},
		{"2^8", volley.WithNetwork(sim.Network{Latency: 1}), ""},
		{"2^8", volley.WithNetwork(sim.Network{Latency: 1, Slower: "1:0.5"}), ""},
		{"2^8", volley.WithNetwork(sim.Network{Latency: 1, Slower: "2:0.5"}), `slower link "2:0.5": want one of nodes 0 to 1`},
		{"2^8", volley.WithNetwork(sim.Network{Latency: 1, Slower: "1:2"}), `slower link "1:2": want`},
		{"2^8", volley.WithMemory(1), ""},
		{"2^8", volley.WithTimeout(0), ""},
	} {
		_, err := volley.NewEncoder(t.Context(), matrixtest.Random(t, fieldtest.Parse(t, c.field), 2, 1), c.opt)
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("got error %v, want one that says %q", err, c.text)
		}
	}
}

// effect returns the report of a run of 16 processors with the options.
func effect(t *testing.T, opts ...volley.Option) *volley.Report {
	t.Helper()
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^16"), 16, 1)
	_, report := mustEncode(t, alike(a, randomPackets(a.Field(), slices.Repeat([]int{3000}, 16)...), opts...))
	report.Seconds, report.AgreeSeconds, report.CompileSeconds, report.CheckSeconds = 0, 0, 0, 0
	return report
}

// TestDefaults names what is the default of all options.
func TestDefaults(t *testing.T) {
	got := effect(t)
	want := effect(t, volley.WithAlgorithm(algo.Auto), volley.WithNetwork(volley.DefaultNetwork()),
		volley.WithMemory(volley.DefaultMemory), volley.WithTimeout(volley.DefaultTimeout), volley.WithCheck(true))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestSlowerLink runs encodes over a network with a slow link: the plan spares it, and takes 0.64 of the time by the model
// that the one for equal links takes. Where the slow link is another one, or none, an encoder has other plans.
func TestSlowerLink(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 8, 1)
	packets := randomPackets(a.Field(), slices.Repeat([]int{224 * 72}, 8)...)
	const batches = "batches=32 slices "
	for network, want := range map[string]string{
		"400kbit/1ms,7:0.5": batches + "1·1·1·1·1·1·1·0", "400kbit/1ms,0:0.25": batches + "0·1·1·1·1·1·1·1", "400kbit/1ms": "pieces=8 radices 8, 8",
	} {
		members := alike(a, packets, volley.WithNetwork(slowerLinks(network)))
		if coded, r := mustEncode(t, members); r.Parameters != want || !slices.EqualFunc(coded, product(a, packets), bytes.Equal) {
			t.Errorf("%s: %s %s, want %s, and right packets", network, r.Algorithm, r.Parameters, want)
		}
	}
	seconds := map[string]float64{}
	for _, name := range []string{"auto", "exchange"} {
		e := mustEncoder(t, a, volley.WithNetwork(slowerLinks("400kbit/1ms,7:0.5")), volley.WithAlgorithm(name))
		r, err := e.Estimate(t.Context(), nil, 224*72)
		if err != nil {
			t.Fatal(err)
		}
		seconds[name] = r.Seconds
	}
	if seconds["auto"] > 0.64*seconds["exchange"] {
		t.Errorf("seconds %v: want auto to take 0.64 of exchange", seconds)
	}
}
