package volley_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"volley"
	"volley/field/fieldtest"
	"volley/files"
	"volley/internal/fuzzlimit"
	"volley/matrix"
	"volley/plan"
	"volley/transport/local"
)

// reports are of a run, of one by a plan with pieces, of one with sinks, and one with all fields.
func reports(t testing.TB) (list []*volley.Report) {
	for _, r := range []int{4, 2} {
		a, err := matrix.Random(fieldtest.Parse(t, "257"), 4, r, 1)
		if err != nil {
			t.Fatal(err)
		}
		e := mustEncoder(t, a, volley.WithAlgorithm("exchange"))
		estimate, err := e.Estimate(t.Context(), nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		packets := []volley.Packet{{Data: []byte{1, 0}}, {}, {}, {}}
		for i := range r {
			packets[i].Result = new([]byte)
		}
		report, err := e.Run(t.Context(), local.New(1)[0], packets...)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, estimate, report)
	}
	return append(list, &volley.Report{
		Algorithm: "a\u2028\"", Parameters: "b", Field: "c", Matrix: "d", K: 4, Sinks: 2, Processors: 6, Ports: 2,
		C1: 1, C2: 3, C3: 5, Pieces: 2, C2Packets: 1.5, BoundC1: 1, BoundC2: 2, PacketBytes: 24, SymbolsPerPacket: 3, Segments: 9,
		Rounds:       []plan.RoundTraffic{{}, {Largest: 3, Messages: 4}},
		BytesSentMax: 1 << 40, ControlRounds: 7, ControlBytes: 8, Columns: []int{1, 0}, Notes: []string{"", "e"},
		PlanHash: "f", Order: "relabelled", Verified: true, Seconds: 1e-9, AgreeSeconds: 2, CompileSeconds: 3, CheckSeconds: 4,
	})
}

// allFields is the last of reports, in the names that programs read.
const allFields = `{"algorithm":"a\u2028\"","parameters":"b","field":"c","matrix":"d","k":4,"sinks":2,"processors":6,"ports":2,"c1":1,"c2":3,"c3":5,` +
	`"pieces":2,"c2_packets":1.5,"bound_c1":1,"bound_c2":2,"packet_bytes":24,"symbols_per_packet":3,"segments":9,` +
	`"rounds":[{"largest_message":0,"messages":0},{"largest_message":3,"messages":4}],"bytes_sent_max":1099511627776,"control_rounds":7,"control_bytes":8,` +
	`"columns":[1,0],"notes":["","e"],"plan_hash":"f","order":"relabelled","verified":true,"seconds":1e-9,"agree_seconds":2,"compile_seconds":3,"check_seconds":4}`

// TestReadReport checks that reports are read as they were written, also with more keys, and those
// of before the parts of Seconds.
func TestReadReport(t *testing.T) {
	list := reports(t)
	for i, want := range list {
		text, err := json.Marshal(want)
		if err != nil || i == len(list)-1 && string(text) != allFields {
			t.Fatalf("%s, %v, want %s", text, err, allFields)
		}
		got, err := volley.ReadReport(bytes.NewReader(append([]byte(`{"host":[null],`), text[1:]...)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, error %v, want %+v", got, err, want)
		}
	}
	got, err := volley.ReadReport(strings.NewReader(oldReport))
	want := &volley.Report{
		Algorithm: "ring", Field: "2^8", K: 3, Processors: 3, Ports: 1, C1: 2, C2: 2, C2Packets: 2, PacketBytes: 8, SymbolsPerPacket: 8,
		Rounds: []plan.RoundTraffic{{Largest: 1, Messages: 3}, {Largest: 1, Messages: 3}}, Seconds: 0.5,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v, want %+v", got, err, want)
	}
}

const oldReport = `{
"algorithm": "ring", "field": "2^8",
"k": 3,
"processors": 3, "ports": 1,
"c1": 2,
"c2": 2,
"packet_bytes": 8, "symbols_per_packet": 8,
"rounds": [{"largest_message": 1, "messages": 3},
{"largest_message": 1, "messages": 3}],
"seconds": 0.5
}
`

func TestReadReportErrors(t *testing.T) {
	changed := func(old, new string) string {
		t.Helper()
		if !strings.Contains(oldReport, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(oldReport, old, new, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"", "line 1: unexpected end of JSON input"},
		{oldReport[:len(oldReport)-3], "line 10: unexpected end of JSON input"},
		{changed(`"k": 3,`, `"k": 3`), `line 4: invalid character '"' after object key:value pair`},
		{"[]", "line 1: want an object"},
		{"\n\n{}", "k: 0: want 1 to 2147483647"},
		{changed(`"field": "2^8",`, ``), "algorithm, field or rounds are missing"},
		{changed(`"rounds"`, `"r"`), "algorithm, field or rounds are missing"},
		{changed(`"k": 3,`, ``), "k: 0: want 1 to 2147483647"},
		{changed(`"k": 3,`, `"k": -3,`), "k: -3: want 1 to 2147483647"},
		{changed(`"k": 3,`, `"k": null,`), "k: 0: want 1 to 2147483647"},
		{changed(`"k": 3,`, `"k": 2147483648,`), "k: 2147483648: want 1 to 2147483647"},
		{changed(`"k": 3,`, `"k": "3",`), `line 3: k: string does not fit there`},
		{changed(`"k": 3,`, `"k": 1e3,`), "line 3: k: number 1e3 does not fit there"},
		{changed(`"k": 3,`, `"k": 4,`), "processors: 3, for 4 sources and 0 sinks"},
		{changed(`"k": 3,`, `"k": 3, "sinks": 5,`), "processors: 3, for 3 sources and 5 sinks"},
		{changed(`"k": 3,`, `"k": 3, "columns": [0,1,2,0],`), "columns: 4, for 3 processors"},
		{changed(`"k": 3,`, `"k": 3, "columns": [0,3],`), "columns[1]: 3, for 3 processors"},
		{changed(`"k": 3,`, `"k": 3, "columns": [0,-1],`), "columns[1]: -1, for 3 processors"},
		{changed(`"k": 3,`, `"k": 3, "notes": ["", {}],`), "line 3: notes: object does not fit there"},
		{changed(`"k": 3,`, `"k": 3, "verified": 1,`), "line 3: verified: number does not fit there"},
		{changed(`"k": 3,`, `"k": 3, "pieces": 2,`), "c2_packets: 0, and c2 is 2 pieces, 2 to a packet"},
		{changed(`"k": 3,`, `"k": 3, "pieces": 2, "c2_packets": 2,`), "c2_packets: 2, and c2 is 2 pieces, 2 to a packet"},
		{changed(`"k": 3,`, `"k": 3, "bytes_sent_max": 1152921504606846977,`), "bytes_sent_max: 1152921504606846977: want 0 to 1152921504606846976"},
		{changed(`"c1": 2`, `"c1": 3`), "c1: 3, and there are messages in 2 of the rounds"},
		{changed(`"c2": 2`, `"c2": 3`), "c2: 3, and the largest messages of the rounds have 2 elements"},
		{changed(`"packet_bytes": 8`, `"packet_bytes": 12`), "packet_bytes: 12, for 8 symbols"},
		{changed(`"packet_bytes": 8`, `"packet_bytes": 0`), "packet_bytes: 0, for 8 symbols"},
		{changed(`"symbols_per_packet": 8`, `"symbols_per_packet": 0`), "packet_bytes: 8, for 0 symbols"},
		{changed(`"rounds": [`, `"rounds": 2, "r": [`), "line 8: rounds: number does not fit there"},
		{changed(`{"largest_message": 1, "messages": 3}]`, `{"messages": 3}]`), "rounds[1]: 3 messages, the largest of 0 elements: want both 0, or both 1 to 2147483647"},
		{changed(`{"largest_message": 1, "messages": 3}]`, `{"largest_message": 2147483648, "messages": 3}]`), "rounds[1]: 3 messages, the largest of 2147483648 elements: want both 0, or both 1 to 2147483647"},
		{changed(`"messages": 3}]`, `"messages": -3}]`), "rounds[1]: -3 messages, the largest of 1 elements: want both 0, or both 1 to 2147483647"},
		{changed(`0.5`, `-0.5`), "seconds: -0.5: want 0 to 1152921504606846976"},
		{changed(`0.5`, `2e18`), "seconds: 2e+18: want 0 to 1152921504606846976"},
	} {
		r, err := volley.ReadReport(strings.NewReader(c.text))
		if !errors.As(err, new(*files.FormatError)) || err.Error() != c.want || r != nil {
			t.Errorf("%s\ngot error %v\nwant      %s", c.text, err, c.want)
		}
	}
	if _, err := volley.ReadReport(iotest.ErrReader(errors.ErrUnsupported)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got error %v", err)
	}
}

// FuzzReadReport checks that what is read from anything is a report: its JSON is read as the
// same.
func FuzzReadReport(f *testing.F) {
	for _, r := range reports(f) {
		text, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(oldReport))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzlimit.Hold(t, len(text))()
		r, err := volley.ReadReport(bytes.NewReader(text))
		if err != nil {
			if wrong := new(files.FormatError); !errors.As(err, &wrong) || wrong.Line < 0 || wrong.Line > 1+bytes.Count(text, []byte("\n")) {
				t.Fatalf("error %v", err)
			}
			return
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := volley.ReadReport(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if same, err := json.Marshal(again); err != nil || !bytes.Equal(same, data) {
			t.Fatalf("got %s, error %v, want %s", same, err, data)
		}
	})
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
