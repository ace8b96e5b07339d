package cli

import (
	"strings"
	"testing"

	"volley/internal/launch"
)

// TestOpenInput has one of several processes read standard input, which is not that of the run.
func TestOpenInput(t *testing.T) {
	t.Parallel()
	job := &session{party: &party{part: func(launch.Ending, *session) int { return 0 }}}
	if _, err := job.openInput("-"); err == nil || !strings.Contains(err.Error(), "name a file") {
		t.Errorf("one of several processes: %v", err)
	}
}
