package fuzzlimit

import (
	"testing"
)

// recorder takes the failures of a test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Setenv(string, string) {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

var kept []byte

// TestHold checks that memory beyond the limit is noticed, also where it is let go of, and that
// within it is not.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		input, takes int
		fails        bool
	}{
		{0, base / 2, false}, {0, base + 1, true}, {base / perByte, base * 3 / 2, false}, {base / perByte, base*2 + 1, true},
	} {
		r := &recorder{TB: t}
		end := Hold(r, c.input)
		for taken := 0; taken < c.takes; taken += 1 << 20 {
			kept = make([]byte, 1<<20)
		}
		if end(); r.failed != c.fails {
			t.Errorf("%d bytes for %d of input: failed %v, want %v", c.takes, c.input, r.failed, c.fails)
		}
	}
}
