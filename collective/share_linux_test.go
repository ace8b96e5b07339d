package collective_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"volley/collective"
	"volley/transport"
	"volley/transport/local"
)

// TestStageStays closes the ranks of two hosts, which send each other what lies on their stages. After an abort another rank
// may still be reading, and the stages stay mapped: else that one would get a SIGSEGV.
func TestStageStays(t *testing.T) {
	broken := errors.New("broken")
	for _, aborts := range []bool{false, true} {
		before := mapped(t)
		ends := local.NewHosts(2, 2)
		run(t, ends, func(ctx context.Context, end *local.Endpoint) error {
			w, err := collective.New(transport.OnHost(end), 0).Stage(ctx, 1<<16)
			if err == nil {
				w.Parts[end.Rank()%2][0] = 1
			}
			return err
		})
		if n := mapped(t) - before; n != len(ends) {
			t.Fatalf("%d stages at %d ranks", n, len(ends))
		}
		if aborts {
			ends[1].Abort(broken)
		}
		want := 0
		if aborts {
			want = len(ends)
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

// run has each rank do something at once.
func run(t *testing.T, ends []*local.Endpoint, do func(context.Context, *local.Endpoint) error) {
	t.Helper()
	errs := make(chan error)
	for _, end := range ends {
		go func() { errs <- do(t.Context(), end) }()
	}
	for range ends {
		if err := <-errs; err != nil {
			t.Error(err)
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
