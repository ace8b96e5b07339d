package session

import (
	"errors"
	"strings"
	"testing"

	"volley/transport/tcp"
)

// TestPortAdvice has a rank not answer another one: --port is named unless it was given.
func TestPortAdvice(t *testing.T) {
	t.Parallel()
	for ports, advised := range map[string]bool{"": true, "7000-7063": false} {
		text := Message(&tcp.UnreachedError{Ports: ports, Err: errors.New("no answer")})
		if !strings.HasPrefix(text, "no answer") || strings.Contains(text, "with --port 7000-7063") != advised {
			t.Errorf("%q: %s", ports, text)
		}
	}
}
