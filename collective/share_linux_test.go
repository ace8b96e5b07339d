package collective_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"volley/collective"
	"volley/transport"
	"volley/transport/local"
)

// TestStageStays closes the ranks of two hosts, which send each other what lies on their stages. After an abort another rank
// may still be reading, and the stages stay mapped: else that one would get a SIGSEGV.
func TestStageStays(t *testing.T) {
	for _, aborts := range []bool{false, true} {
		before := mapped(t)
		ends := local.NewHosts(2, 2)
		errs := make(chan error)
		for _, end := range ends {
			go func() {
				w, err := collective.New(transport.OnHost(end), 0).Stage(t.Context(), 1<<16)
				if err == nil {
					w.Parts[end.Rank()%2][0] = 1
				}
				errs <- err
			}()
		}
		for range ends {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := mapped(t) - before; n != len(ends) {
			t.Fatalf("%d stages at %d ranks", n, len(ends))
		}
		want := 0
		if aborts {
			want = len(ends)
			ends[1].Abort(errors.New("broken"))
		}
		for _, end := range ends {
			if err := end.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if n := mapped(t) - before; n != want {
			t.Errorf("abort %v: %d stages are mapped after Close, want %d", aborts, n, want)
		}
	}
}

// mapped counts the shared memories that this process has mapped.
func mapped(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "memfd:volley")
}

// TestLive has a rank come to a meeting after many timeouts of the other one, which waits while it gives signs of life.
func TestLive(t *testing.T) {
	for _, lives := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			errs := make(chan error, 2)
			for _, end := range local.NewHosts(2) {
				h := transport.HostOf(end)
				h.Crowded, h.Yield = true, func() { time.Sleep(time.Microsecond) }
				go func() {
					c := collective.New(end, time.Second)
					w, err := c.Share(t.Context(), 8)
					if err == nil && end.Rank() == 0 {
						ctx, cancel := context.WithCancelCause(t.Context())
						var busy atomic.Bool
						busy.Store(lives)
						go c.Live(ctx, cancel, w, &busy)
						time.Sleep(time.Minute)
						cancel(nil)
					}
					if err == nil {
						_, err = c.Meet(t.Context(), w, 1)
					}
					errs <- err
				}()
			}
			if err := <-errs; lives != (err == nil) || err != nil && !errors.Is(err, transport.ErrTimeout) {
				t.Errorf("lives %v: %v", lives, err)
			}
			<-errs
		})
	}
}
