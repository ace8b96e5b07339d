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

// sent is a transfer that is over.
type sent struct{}

func (sent) Wait(context.Context) error { return nil }

// TestOrder checks that a message without a delay stays behind a late one of its stream, and
// overtakes those of others; and that the end of a context ends delays.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	q := late.New(&mu)
	ctx, cancel := context.WithCancel(t.Context())
	var order []string
	var waits []transport.Sending
	send := func(name string, dst int, delay time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, q.Send(ctx, dst, transport.Tag{}, delay, func() transport.Sending {
			order = append(order, name)
			return sent{}
		}))
	}
	send("late", 1, time.Hour)
	send("behind", 1, 0)
	send("elsewhere", 2, 0)
	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := waits[0].Wait(given); err == nil {
		t.Error("a message that is not handed on is sent")
	}
	cancel()
	for i, w := range waits {
		if err := w.Wait(t.Context()); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	q.Wait()
	send("later", 1, 0) // at once, as nothing is ahead any more
	if want := []string{"elsewhere", "late", "behind", "later"}; !slices.Equal(order, want) {
		t.Errorf("handed on %q, want %q", order, want)
	}
}
