package volley_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
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
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 2, 1)
	for _, c := range []struct {
		bad  volley.Option
		text string
	}{
		{volley.WithNetwork(sim.Network{}), "network without times"},
		{volley.WithPaperModel(0, 0, 0), "0 ports: want 1 or more"},
		{volley.WithPaperModel(-3, 0, 0), "-3 ports: want 1 or more"},
		{volley.WithAlgorithm("magic"), `no algorithm "magic"`},
		{volley.WithAlgorithm(""), `no algorithm ""`},
		{volley.WithPaperModel(1, -1, 0), "β = -1ns: want 0 or more"},
		{volley.WithPaperModel(1, 0, -0.5), "τ = -500 ms/B: want"},
		{volley.WithPaperModel(1, 0, sim.PerByte(math.NaN())), "τ = NaN s/B: want"},
		{volley.WithPaperModel(1, 0, sim.PerByte(math.Inf(1))), "τ = +Inf s/B: want"},
		{volley.WithMemory(0), "0 bytes of memory: want 1 or more"},
		{volley.WithTimeout(-time.Second), "timeout -1s: want 0 or more"},
	} {
		if _, err := volley.NewEncoder(t.Context(), a, c.bad); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got error %v, want one that says %q", err, c.text)
		}
	}
	for _, fine := range []volley.Option{
		volley.WithPaperModel(math.MaxInt, 0, 0), volley.WithNetwork(sim.Network{Latency: 1}), volley.WithWholePackets(), volley.WithMemory(1), volley.WithTimeout(0),
	} {
		if _, err := volley.NewEncoder(t.Context(), a, fine); err != nil {
			t.Error(err)
		}
	}
}

// effect returns the report of a run of 16 processors with the options.
func effect(t *testing.T, opts ...volley.Option) *volley.Report {
	t.Helper()
	f := fieldtest.Parse(t, "2^16")
	lengths := make([]int, 16)
	for k := range lengths {
		lengths[k] = 3000
	}
	_, report := mustEncode(t, alike(matrixtest.Random(t, f, 16, 1), randomPackets(f, lengths...), opts...))
	report.Seconds, report.AgreeSeconds, report.CompileSeconds, report.CheckSeconds = 0, 0, 0, 0
	return report
}

func TestDefaults(t *testing.T) {
	got := effect(t)
	want := effect(t, volley.WithAlgorithm(algo.Auto), volley.WithNetwork(volley.DefaultNetwork()),
		volley.WithMemory(volley.DefaultMemory), volley.WithTimeout(volley.DefaultTimeout),
		volley.WithCheck(true))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestPaperModel checks that they are what a plan is chosen and known by. As
// long as one algorithm beats all others at every β and τ, the choice itself
// cannot show it.
func TestPaperModel(t *testing.T) {
	hashes := map[string]bool{}
	for _, opts := range [][]volley.Option{
		{volley.WithPaperModel(1, 0, 0)}, {volley.WithPaperModel(1, time.Second, 0)},
		{volley.WithPaperModel(1, 0, 1e-3)}, {volley.WithPaperModel(1, time.Second, 1e-3)},
	} {
		hashes[effect(t, opts...).PlanHash] = true
	}
	if len(hashes) != 4 {
		t.Errorf("%d different plans, want 4", len(hashes))
	}
}

// TestTooLittleMemory checks that every processor says how much would do, and
// that it does.
func TestTooLittleMemory(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	a := matrixtest.Random(t, f, 5, 1)
	packets := randomPackets(f, 1000, 1000, 1000, 1000, 1000)
	least := map[int64]bool{}
	for k, r := range encode(t.Context(), alike(a, packets, volley.WithMemory(300))) {
		var memory *volley.MemoryError
		if !errors.As(r.err, &memory) {
			t.Fatalf("processor %d: got error %v", k, r.err)
		}
		least[memory.Least] = true
	}
	if len(least) != 1 {
		t.Errorf("processors need %v", least)
	}
	for enough := range least {
		coded, _ := mustEncode(t, alike(a, packets, volley.WithMemory(enough)))
		for j, want := range product(a, packets) {
			if !bytes.Equal(coded[j], want) {
				t.Errorf("processor %d: a wrong packet", j)
			}
		}
		for k, r := range encode(t.Context(), alike(a, packets, volley.WithMemory(enough-1))) {
			if r.err == nil {
				t.Errorf("processor %d: a byte less does it too", k)
			}
		}
	}
}

// TestWithCheck checks what the check costs; that it finds something is shown
// by TestFlippedData.
func TestWithCheck(t *testing.T) {
	on, off := effect(t), effect(t, volley.WithCheck(false))
	if !on.Verified || off.Verified {
		t.Errorf("verified: %v with the check, %v without", on.Verified, off.Verified)
	}
	// An exchange of greetings; with the check, one of fingerprints.
	if off.ControlRounds != 2 || on.ControlRounds != 4 {
		t.Errorf("%d control rounds with the check and %d without, want 4 and 2", on.ControlRounds, off.ControlRounds)
	}
	const fingerprints = 2 * 3 * 2 // of a packet and its result, of three symbols
	if got := on.ControlBytes - off.ControlBytes; got != 15*fingerprints {
		t.Errorf("%d bytes for the check, want %d", got, 15*fingerprints)
	}
}
