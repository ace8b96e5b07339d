package late_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"volley/transport"
	"volley/transport/late"
)

// TestOrder checks that a message without a delay stays behind a late one of its stream, and
// overtakes those of others; and that the end of a context ends delays.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	d := late.New(&mu)
	ctx, cancel := context.WithCancel(t.Context())
	var order []string
	post := func(name string, dst int, delay time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		d.Post(ctx, dst, transport.Tag{}, delay, func() { order = append(order, name) })
	}
	post("late", 1, time.Hour)
	post("behind", 1, 0)
	post("elsewhere", 2, 0)
	cancel()
	d.Wait()
	post("later", 1, 0) // at once, as nothing is ahead any more
	if want := []string{"elsewhere", "late", "behind", "later"}; !slices.Equal(order, want) {
		t.Errorf("handed on %q, want %q", order, want)
	}
}
