package volley_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"volley"
	"volley/plan"
)

func TestMerge(t *testing.T) {
	one := &volley.Report{
		Algorithm: "x", C1: 1, C2: 2, C3: 5, BytesSentMax: 100, ControlRounds: 7, ControlBytes: 30, Verified: true, Seconds: 1,
		Rounds: []plan.RoundTraffic{{Largest: 2, Messages: 1}, {}, {}},
	}
	two := &volley.Report{
		Algorithm: "x", C1: 2, C2: 4, C3: 4, BytesSentMax: 200, ControlRounds: 7, ControlBytes: 20, Verified: true, Seconds: 3,
		Rounds: []plan.RoundTraffic{{Largest: 1, Messages: 2}, {}, {Largest: 3, Messages: 1}},
	}
	want := &volley.Report{
		Algorithm: "x", C1: 2, C2: 5, C2Packets: 5, C3: 5, BytesSentMax: 200, ControlRounds: 7, ControlBytes: 30, Verified: true, Seconds: 3,
		Rounds: []plan.RoundTraffic{{Largest: 2, Messages: 3}, {}, {Largest: 3, Messages: 1}},
	}
	if got := volley.Merge([]*volley.Report{one, two}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if one.C1 != 1 || one.Rounds[0].Messages != 1 {
		t.Errorf("Merge changed its argument: %+v", one)
	}
	two.Verified = false
	if volley.Merge([]*volley.Report{one, two}).Verified {
		t.Error("verified, though one processor is not")
	}
}

// TestReportJSON checks the names that programs read.
func TestReportJSON(t *testing.T) {
	data, err := json.Marshal(volley.Report{Rounds: []plan.RoundTraffic{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"algorithm", "field", "matrix", "k", "ports", "c1", "c2", "c3", "bound_c1", "bound_c2", "packet_bytes",
		"symbols_per_packet", "segments", "rounds", "bytes_sent_max", "control_rounds", "control_bytes", "plan_hash",
		"order", "verified", "seconds",
	} {
		if _, ok := object[key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
	round := object["rounds"].([]any)[0].(map[string]any)
	for _, key := range []string{"largest_message", "messages"} {
		if _, ok := round[key]; !ok {
			t.Errorf("no key %q in a round", key)
		}
	}
}
