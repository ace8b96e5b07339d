package sim

import (
	"math"
	"testing"
	"time"
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
		if seconds := 945e3 * float64(n.Gap); math.Abs(seconds*c.bits/8e6-1) > 1e-9 {
			t.Errorf("%s: 945,000 bytes take %v s", c.name, seconds) // as long as a million without headers
		}
	}
	for _, name := range []string{"", "lan", "10gbit", "/20us", "10gbit/20", "10gbit/-1us", "10gb/20us", "0gbit/1us", "1..2gbit/1us", "1gbit/2h", "99999999tbit/1us", "1gbit/9999999999s", "wan/1ms"} {
		if n, err := ParseNetwork(name); err == nil {
			t.Errorf("%q: %v, want an error", name, n)
		}
	}
}

// TestNetworkValidate checks what is no network.
func TestNetworkValidate(t *testing.T) {
	for name, bad := range map[string]Network{
		"nothing":  {},
		"negative": {Gap: -1},
		"infinite": {Gap: PerByte(math.Inf(1))},
		"latency":  {Latency: -1, Gap: 1},
		"overhead": {Overhead: 2 * time.Hour, Gap: 1},
	} {
		if bad.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, bad)
		}
	}
}
