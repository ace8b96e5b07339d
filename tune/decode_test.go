package tune

import (
	"encoding/json"
	"reflect"
	"testing"

	"volley/internal/fuzzlimit"
)

// FuzzDecode checks that what is read can be written and read again.
func FuzzDecode(f *testing.F) {
	r := &Result{
		Host: "node", Transport: "local", Ranks: 2, BetaSeconds: 9e-7, TauSecondsPerByte: 1e-10,
		Points: []Point{{Bytes: 64, Seconds: 1e-6}}, Coding: []Coding{{Field: "2^8", SymbolBytes: 1, Cached: 2e-11}},
	}
	good, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":"volley-tune","version":1,"beta_seconds":0,"tau_seconds_per_byte":0,"coding":[]}`))
	f.Add([]byte(`{"format":"volley-tune","version":2}`))
	f.Add([]byte(`{"format":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Hold(t, len(data))()
		r, err := decode(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Skip(err) // a date of the year 10000
		}
		back, err := decode(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		back.Date = r.Date // which may be the same in another zone
		if !reflect.DeepEqual(back, r) {
			t.Errorf("%+v, want %+v", back, r)
		}
	})
}
