package sim

import (
	"math"
	"slices"
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
	for _, name := range []string{"", "lan", "10gbit", "/20us", "10gbit/20", "10gbit/-1us", "10gb/20us", "0gbit/1us", "1..2gbit/1us", "1gbit/2h", "99999999tbit/1us", "1gbit/9999999999s", "wan/1ms", "wan,"} {
		if n, err := ParseNetwork(name); err == nil {
			t.Errorf("%q: %v, want an error", name, n)
		}
	}
}

// TestRates reads the rates of slower links after the name of a network, and what are none.
func TestRates(t *testing.T) {
	n, err := ParseNetwork("wan,3:0.25,0:1")
	if rates, bad := n.Rates(4); err != nil || bad != nil || !slices.Equal(rates, []float64{1, 1, 1, 0.25}) || n.Slower != "3:0.25,0:1" {
		t.Errorf("%v: %v, %v, %v", n, rates, err, bad)
	}
	if rates, err := (Network{Gap: 1}).Rates(4); rates != nil || err != nil {
		t.Errorf("without slower links: %v, %v", rates, err)
	}
	for _, text := range []string{"4:0.5", "-1:0.5", "0:0", "0:1e-320", "0:1.5", "0:NaN", "0:-1", "0", ":0.5", "0:0.5,", "x:0.5", "0:0.5,0:0.2"} {
		if rates, err := (Network{Slower: text}).Rates(4); err == nil {
			t.Errorf("%q: %v, want an error", text, rates)
		}
	}
}

// TestNetworkValidate checks what is no network.
func TestNetworkValidate(t *testing.T) {
	for name, bad := range map[string]Network{
		"nothing":  {},
		"no times": {Slower: "0:0.5"},
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
