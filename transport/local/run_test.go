package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
)

func TestRun(t *testing.T) {
	t.Parallel()
	ranks := make([]bool, 5)
	err := local.Run(context.Background(), len(ranks), func(_ context.Context, t transport.Transport) error {
		ranks[t.Rank()] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for r, ran := range ranks {
		if !ran {
			t.Errorf("rank %d did not run", r)
		}
	}
}

// TestRunReportsTheCause checks that ranks that only heard of a failure do not
// repeat it, and that none of them waits for ever.
func TestRunReportsTheCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), transporttest.Limit)
	defer cancel()
	cause := errors.New("disk full")
	err := local.Run(ctx, 4, func(ctx context.Context, t transport.Transport) error {
		if t.Rank() == 2 {
			return cause
		}
		return transport.Receive(ctx, t, 2, transport.Tag{}, []byte{0})
	})
	if !errors.Is(err, cause) || strings.Count(err.Error(), "disk full") != 1 {
		t.Errorf("error %q, want the cause, once", err)
	}
}

// TestRunJoins checks that different failures are all reported, and equal ones
// once.
func TestRunJoins(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	err := local.Run(context.Background(), 4, func(_ context.Context, t transport.Transport) error {
		return []error{first, nil, second, errors.New("first")}[t.Rank()]
	})
	if err == nil || err.Error() != "first\nsecond" {
		t.Errorf("error %q, want first and second, once each", err)
	}
}
