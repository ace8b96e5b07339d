package poll_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"volley/internal/poll"
)

var errStop = errors.New("stop")

// ended returns a context that has ended with errStop.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	return ctx
}

// within returns the error with which a computation ends.
func within(do func()) (err error) {
	defer poll.Catch(&err)
	do()
	return nil
}

func TestPoller(t *testing.T) {
	if err := within(func() { poll.New(ended(t)).Steps(1) }); err != errStop {
		t.Errorf("the first step: %v, want %v", err, errStop)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	steps := 0
	err := within(func() {
		for p := poll.New(ctx); ; steps++ {
			if p.Steps(1); steps == 10 {
				cancel(errStop)
			}
		}
	})
	if err != errStop || steps > 200 {
		t.Errorf("%v after %d steps, want %v before 200", err, steps, errStop)
	}
	if err := within(func() { (*poll.Poller)(nil).Steps(math.MaxInt) }); err != nil {
		t.Errorf("without a context: %v", err)
	}
	if err := within(func() { poll.Must(nil); poll.Must(errStop) }); err != errStop {
		t.Errorf("Must: %v, want %v", err, errStop)
	}
	defer func() {
		if got := recover(); got != "other" {
			t.Errorf("another panic: %v", got)
		}
	}()
	_ = within(func() { panic("other") })
}

// TestOnce checks that a value whose making has ended is made by the next who asks.
func TestOnce(t *testing.T) {
	var once poll.Once[int]
	made := 0
	get := func(ctx context.Context) (value int, err error) {
		err = within(func() {
			value = once.Get(func() int { poll.New(ctx).Steps(1); made++; return 7 })
		})
		return value, err
	}
	if _, err := get(ended(t)); err != errStop {
		t.Fatalf("%v, want %v", err, errStop)
	}
	for range 2 {
		if v, err := get(t.Context()); v != 7 || err != nil {
			t.Fatalf("%d, %v, want 7", v, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times, want once", made)
	}
}

func TestLend(t *testing.T) {
	type key struct{}
	lent, takeBack := poll.Lend(context.WithValue(ended(t), key{}, 1))
	if lent.Err() == nil || context.Cause(lent) != errStop || lent.Value(key{}) != 1 {
		t.Errorf("before: %v, cause %v, value %v", lent.Err(), context.Cause(lent), lent.Value(key{}))
	}
	takeBack()
	if lent.Err() != nil || lent.Value(key{}) != nil || lent.Done() != nil {
		t.Errorf("afterwards: %v, value %v", lent.Err(), lent.Value(key{}))
	}
}
