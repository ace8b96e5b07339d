package transport

import (
	"fmt"
	"time"
)

// CheckTimeout returns an error for a timeout below 0. One of 0 is none, everywhere in Volley and its command line: who
// waits then waits until the others come, or the context ends.
func CheckTimeout(timeout time.Duration) error {
	if timeout < 0 {
		return fmt.Errorf("timeout %v: want 0 or more, and 0 is none", timeout)
	}
	return nil
}
