package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestHears has lines with characters that a terminal is not to get: each is a record all the same.
func TestHears(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "7", `"x"`, "{", "\x7f", "\u0085", "\U000e0001", "\xff", "\x1b[2J"} {
		record, _ := json.Marshal(map[string]string{"msg": text})
		for _, line := range []string{text, string(record)} {
			var b bytes.Buffer
			s := &Invocation{stderr: &b, JSON: true}
			s.LogTo(false, true)
			s.Hears("host", line)
			var x map[string]any
			if err := json.Unmarshal(b.Bytes(), &x); err != nil || strings.Count(b.String(), "\n") != 1 {
				t.Errorf("%q: %q: %v", line, &b, err)
			}
		}
	}
}
