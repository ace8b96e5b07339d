package ranks

import (
	"testing"
	"time"
)

// TestTimeoutLonger has a timeout that is none stay so.
func TestTimeoutLonger(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{0: 0, 1: 1 + time.Minute, time.Hour: time.Hour + time.Minute} {
		if got := longer(timeout, time.Minute); got != want {
			t.Errorf("%v: %v, want %v", timeout, got, want)
		}
	}
}
