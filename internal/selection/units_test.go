package selection

import "testing"

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]float64{"20us": 20e-6, "0.8ns": 0.8e-9, "1.5ms": 1.5e-3, "0s": 0, "0": 0, "0.5h": 1800, "3µs": 3e-6} {
		if got, err := ParseDuration("tau", s); err != nil || got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("%s: %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "5", "us", "-1us", "1e3us", "2h30m", "1us5", "61m", "9999999h", "1.2.3s", "1 s", "NaNs", "infs"} {
		if d, err := ParseDuration("tau", s); err == nil {
			t.Errorf("%q: %v, want an error", s, d)
		}
	}
}
