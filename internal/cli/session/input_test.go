package session

import (
	"strings"
	"testing"

	"volley/internal/launch"
)

// TestOpenInput has one of several processes read standard input, which is not that of the run.
func TestOpenInput(t *testing.T) {
	t.Parallel()
	job := &Invocation{Party: &Party{Part: func(launch.Ending, *Invocation) int { return 0 }}}
	if _, err := job.OpenInput("-"); err == nil || !strings.Contains(err.Error(), "name a file") {
		t.Errorf("one of several processes: %v", err)
	}
}
