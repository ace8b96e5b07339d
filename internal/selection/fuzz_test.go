package selection

import (
	"testing"
	"time"

	"volley/internal/fuzzlimit"
)

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"20us", "0.8ns", "0", "1.5h", "2h30m", "1us5", "-1s", ".s", "1e9s", "99999999999999999999h", "µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzzlimit.Hold(t, len(s))()
		seconds, err := ParseDuration("tau", s)
		if err != nil {
			return
		}
		if !(seconds >= 0 && seconds <= longest.Seconds()) {
			t.Fatalf("%q: %v s", s, seconds)
		}
		if d, err := time.ParseDuration(s); err == nil && seconds < 1e3 && (time.Duration(seconds*1e9)-d).Abs() > time.Microsecond {
			t.Fatalf("%q: %v s, as a Duration %v", s, seconds, d)
		}
	})
}

func FuzzParseProcessors(f *testing.F) {
	for _, s := range []string{"1", "2..64", "4,8,16..20", "..", "5..2", ",", "1..99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzzlimit.Hold(t, len(s))()
		list, err := ParseProcessors(s)
		if err != nil {
			return
		}
		if len(list) == 0 || len(list) > MostNumbers {
			t.Fatalf("%q: %d values", s, len(list))
		}
		for _, k := range list {
			if k < 1 || k > LargestK {
				t.Fatalf("%q: %d", s, k)
			}
		}
	})
}
