package sim

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"volley/internal/fuzzlimit"
)

// TestParseNetwork compares the presets with the networks that they are named after.
func TestParseNetwork(t *testing.T) {
	for _, c := range []struct {
		name              string
		latency, overhead time.Duration
		bits              float64 // per second
	}{
		{"100mbit/1ms", time.Millisecond, 20 * time.Microsecond, 100e6},
		{"10gbit/20us", 20 * time.Microsecond, 2 * time.Microsecond, 10e9},
		{"200gbit/2us", 2 * time.Microsecond, 500 * time.Nanosecond, 200e9},
		{"wan", 30 * time.Millisecond, 20 * time.Microsecond, 1e9},
		{"12.5mbit/100ms", 100 * time.Millisecond, 20 * time.Microsecond, 12.5e6},
		{"1tbit/0s", 0, 500 * time.Nanosecond, 1e12},
	} {
		n, err := ParseNetwork(c.name)
		if err != nil || n.Latency != c.latency || n.Overhead != c.overhead || n.Validate() != nil {
			t.Errorf("%s: %v, %v", c.name, n, err)
		}
		if seconds := 945e3 * float64(n.Gap(7)); math.Abs(seconds*c.bits/8e6-1) > 1e-9 {
			t.Errorf("%s: 945,000 bytes take %v s", c.name, seconds) // as long as a million without headers
		}
	}
	for _, name := range []string{"", "lan", "10gbit", "/20us", "10gbit/20", "10gbit/-1us", "10gb/20us", "0gbit/1us", "1..2gbit/1us", "1gbit/2h", "99999999tbit/1us", "1gbit/9999999999s", "wan/1ms"} {
		if n, err := ParseNetwork(name); err == nil {
			t.Errorf("%q: %v, want an error", name, n)
		}
	}
}

// TestGap reads G off a table and its lines.
func TestGap(t *testing.T) {
	n := Network{Gaps: Gaps{{2, 4}, {4, 8}, {16, 20}}}
	for messages, want := range map[int]PerByte{0: 4, 1: 4, 2: 4, 3: 6, 4: 8, 5: 9, 10: 14, 16: 20, 1000: 20} {
		if got := n.Gap(messages); got != want {
			t.Errorf("G(%d) = %v, want %v", messages, float64(got), float64(want))
		}
	}
	for name, bad := range map[string]Network{
		"no gap":    {},
		"falling":   {Gaps: Gaps{{2, 1}, {1, 1}}},
		"hole":      {Gaps: Gaps{{1, 1}, {}, {3, 1}}},
		"negative":  {Gaps: Gaps{{1, -1}}},
		"infinite":  {Gaps: Gaps{{1, PerByte(math.Inf(1))}}},
		"latency":   {Latency: -1, Gaps: Gaps{{1, 1}}},
		"overhead":  {Overhead: 2 * time.Hour, Gaps: Gaps{{1, 1}}},
		"backwards": {Gaps: Gaps{{-1, 1}}},
	} {
		if bad.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, bad)
		}
	}
}

// FuzzNetworkJSON checks that a network that is valid comes back as it was written.
func FuzzNetworkJSON(f *testing.F) {
	f.Add([]byte(`{"latency_ns":20000,"overhead_ns":2000,"gaps":[{"messages":1,"seconds_per_byte":8e-10},{"messages":63,"seconds_per_byte":1e-9}]}`))
	f.Add([]byte(`{"gaps":[{},{},{},{},{}]}`))
	f.Add([]byte(`{"gaps":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Hold(t, len(data))()
		var n, again Network
		if json.Unmarshal(data, &n) != nil || n.Validate() != nil {
			return
		}
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || again != n {
			t.Errorf("%s: %+v, %v, want %+v", text, again, err, n)
		}
	})
}
