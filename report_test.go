package volley_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"volley"
	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/sim"
)

// TestReport compares what was counted with the cost of the plan.
func TestReport(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	for _, k := range []int{1, 2, 5, 16} {
		a := matrixtest.Random(t, f, k, 1)
		lengths := make([]int, k)
		for i := range lengths {
			lengths[i] = 1000
		}
		packets := randomPackets(f, lengths...)
		for _, algorithm := range algo.Algorithms() {
			if algorithm.Structured {
				continue
			}
			for _, memory := range []int64{16 << 10, volley.DefaultMemory} {
				_, got := mustEncode(t, alike(a, packets, volley.WithAlgorithm(algorithm.Name), volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau), volley.WithMemory(memory)))
				p, err := algorithm.Compile(a, 2)
				if err != nil {
					t.Fatal(err)
				}
				encoder, err := volley.NewEncoder(t.Context(), a, volley.WithAlgorithm(algorithm.Name), volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau))
				if err != nil {
					t.Fatal(err)
				}
				want, err := encoder.Estimate(t.Context(), nil, 1000)
				if err != nil {
					t.Fatal(err)
				}
				cost := sim.Count(p)
				for n, round := range cost.Rounds {
					if got.Rounds[n] != round {
						t.Errorf("%s, K=%d: round %d: got %+v, want %+v", algorithm.Name, k, n, got.Rounds[n], round)
					}
				}
				if got.C1 != cost.C1 || got.C2 != cost.C2 {
					t.Errorf("%s, K=%d: counted %d/%d, want %d/%d", algorithm.Name, k, got.C1, got.C2, cost.C1, cost.C2)
				}
				for proc := range k { // of the busiest
					sent := int64(0)
					for _, round := range p.Schedule(proc).Rounds {
						for _, s := range round.Sends {
							sent += int64(len(s.Slots)) * 2000
						}
					}
					want.BytesSentMax = max(want.BytesSentMax, sent)
				}
				want.Verified = true
				// What the plan does not tell.
				want.Segments, want.PlanHash, want.Seconds = got.Segments, got.PlanHash, got.Seconds
				want.AgreeSeconds, want.CompileSeconds, want.CheckSeconds = got.AgreeSeconds, got.CompileSeconds, got.CheckSeconds
				want.ControlRounds, want.ControlBytes = got.ControlRounds, got.ControlBytes
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, K=%d: got %+v, want %+v", algorithm.Name, k, got, want)
				}
				if got.Segments < 1 || len(got.PlanHash) != 64 || got.Seconds <= 0 || (got.ControlBytes > 0) != (k > 1) {
					t.Errorf("%s, K=%d: got %+v", algorithm.Name, k, got)
				}
			}
		}
	}
}

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
