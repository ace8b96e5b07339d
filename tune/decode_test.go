package tune

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"volley/internal/fuzzlimit"
)

// FuzzDecode checks that what is read can be written and read again.
func FuzzDecode(f *testing.F) {
	good, err := json.Marshal(file{Format, Version, []*Result{{
		Platform: Platform{Transport: "local", Hosts: []string{"node"}, Ranks: 2},
		Network:  networks[1], Points: []Point{{Messages: 3, Bytes: 63, Seconds: 1e-6}},
		Coding: []Coding{{Field: "2^8", SymbolBytes: 1, Cached: 2e-11}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":"volley-tune","version":3,"results":[]}`))
	f.Add([]byte(`{"format":"volley-tune","version":1,"beta_seconds":0,"tau_seconds_per_byte":0,"coding":[]}`))
	f.Add([]byte(`{"format":"volley-tune","version":4}`))
	f.Add([]byte(`{"format":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Hold(t, len(data))()
		list, err := decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := json.Marshal(file{Format, Version, list})
		if err != nil {
			t.Skip(err) // a date of the year 10000
		}
		back, err := decode(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		for i, r := range list {
			back[i].Date = r.Date // which may be the same in another zone
		}
		if !reflect.DeepEqual(back, list) {
			t.Errorf("%s", again)
		}
	})
}
