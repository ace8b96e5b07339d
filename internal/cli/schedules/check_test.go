package schedules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/cli/session"
)

// TestReadAtMost reads no more of a file than it may have.
func TestReadAtMost(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(name, []byte("12345"), 0o666); err != nil {
		t.Fatal(err)
	}
	if text, err := readAtMost(new(session.Invocation), name, 5); string(text) != "12345" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for _, long := range []string{name, "/dev/zero"} {
		if _, err := readAtMost(new(session.Invocation), long, 4); err == nil || !strings.Contains(err.Error(), "more than 4 bytes") {
			t.Errorf("%s: %v", long, err)
		}
	}
}
