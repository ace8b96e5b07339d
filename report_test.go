package volley_test

import (
	"encoding/json"
	"testing"

	"volley"
	"volley/plan"
)

// fullReport has all fields.
var fullReport = &volley.Report{
	Algorithm: "a\u2028\"", Parameters: "b", Field: "c", Matrix: "d", K: 4, Sinks: 2, Processors: 6, Ports: 2,
	C1: 1, C2: 3, C3: 5, Pieces: 2, C2Packets: 1.5, PacketBytes: 24, SymbolsPerPacket: 3, Segments: 9,
	Rounds:       []plan.RoundTraffic{{}, {Largest: 3, Messages: 4}},
	BytesSentMax: 1 << 40, ControlRounds: 7, ControlBytes: 8, Columns: []int{1, 0}, Notes: []string{"", "e"},
	PlanHash: "f", Order: "relabelled", Verified: true, Seconds: 1e-9, AgreeSeconds: 2, CompileSeconds: 3, CheckSeconds: 4,
}

// allFields is fullReport, in the names that programs read.
const allFields = `{"algorithm":"a\u2028\"","parameters":"b","field":"c","matrix":"d","k":4,"sinks":2,"processors":6,"ports":2,"c1":1,"c2":3,"c3":5,` +
	`"pieces":2,"c2_packets":1.5,"packet_bytes":24,"symbols_per_packet":3,"segments":9,` +
	`"rounds":[{"largest_message":0,"messages":0},{"largest_message":3,"messages":4}],"bytes_sent_max":1099511627776,"control_rounds":7,"control_bytes":8,` +
	`"columns":[1,0],"notes":["","e"],"plan_hash":"f","order":"relabelled","verified":true,"seconds":1e-9,"agree_seconds":2,"compile_seconds":3,"check_seconds":4}`

// TestReportJSON checks the names that programs read.
func TestReportJSON(t *testing.T) {
	text, err := json.Marshal(fullReport)
	if err != nil || string(text) != allFields {
		t.Errorf("%s, %v, want %s", text, err, allFields)
	}
}
