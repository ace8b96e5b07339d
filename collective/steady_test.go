package collective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"volley/collective"
	"volley/transport"
	"volley/transport/local"
)

// TestSteady has one rank work for longer than three timeouts, which may differ: nobody gives up, all return when it has ended,
// and they hear the values of all, short and long ones.
func TestSteady(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 5, 9} {
		for _, timeout := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 10 * time.Second} {
			for _, differ := range []bool{false, timeout > time.Second} { // others beat now and then
				synctest.Test(t, func(t *testing.T) {
					long := max(3*timeout+timeout/3, time.Microsecond)
					begun := time.Now()
					var worked atomic.Int32
					value := func(rank int) string { return strings.Repeat("x", 5000*rank/n) }
					err := local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
						mine := timeout
						if differ && tr.Rank() > 0 {
							mine = []time.Duration{time.Hour, 0}[tr.Rank()%2]
						}
						all, err := collective.SteadyValues(ctx, tr, mine, func(ctx context.Context) (string, error) {
							if tr.Rank() == n/2 {
								time.Sleep(long)
							}
							worked.Add(1)
							return value(tr.Rank()), ctx.Err()
						})
						for r := range n {
							if err == nil && (len(all) != n || all[r] != value(r)) {
								t.Errorf("rank %d hears %d values, another of rank %d", tr.Rank(), len(all), r)
							}
						}
						if now := int(worked.Load()); now != n {
							t.Errorf("rank %d returns when %d have worked", tr.Rank(), now)
						}
						return err
					})
					if took := time.Since(begun); err != nil || took < long || took > long+timeout/2+time.Second {
						t.Errorf("%d ranks, timeout %v: %v after %v", n, timeout, err, took)
					}
				})
			}
		}
	}
}

// TestSteadyBeside has ranks work beside collectives of the same ranks: what they say there is not taken for signs of
// life, nor the other way round.
func TestSteadyBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := local.Run(t.Context(), 3, func(ctx context.Context, tr transport.Transport) error {
			c := collective.New(tr, time.Second)
			done := make(chan error, 1)
			go func() {
				done <- c.Separate().Steady(ctx, func(context.Context) error {
					time.Sleep(time.Duration(1+tr.Rank()) * time.Minute)
					return nil
				})
			}()
			for range 10 {
				all, err := c.Allgather(ctx, []byte{7, byte(tr.Rank())})
				if err != nil || fmt.Sprint(all) != "[[7 0] [7 1] [7 2]]" {
					return fmt.Errorf("rank %d hears %v: %v", tr.Rank(), all, err)
				}
				time.Sleep(10 * time.Second)
			}
			return <-done
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestSteadyDead has one rank never come, or stop in the midst: the others say so soon
// after the timeout, and their work is ended.
func TestSteadyDead(t *testing.T) {
	t.Parallel()
	const n, victim, timeout = 5, 3, 10 * time.Second
	for _, after := range []time.Duration{0, 25 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var ended atomic.Int32
			local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
				if tr.Rank() == victim {
					alive, die := context.WithTimeout(ctx, after)
					defer die()
					if after > 0 {
						collective.Steady(alive, &silent{tr}, timeout, func(ctx context.Context) error { <-ctx.Done(); return nil })
					}
					time.Sleep(time.Hour)
					return nil
				}
				err := collective.Steady(ctx, tr, timeout, func(ctx context.Context) error {
					<-ctx.Done()
					ended.Add(1)
					return ctx.Err()
				})
				if took := time.Since(begun) - after; !errors.Is(err, transport.ErrTimeout) || took < timeout/2 || took > timeout*3/2 {
					t.Errorf("rank %d: %v after %v", tr.Rank(), err, took)
				}
				return nil
			})
			if ended.Load() != n-1 {
				t.Errorf("%d works have ended, want %d", ended.Load(), n-1)
			}
		})
	}
}

// silent is a transport whose rank tells nobody that it ends.
type silent struct{ transport.Transport }

func (silent) Abort(error) {}

// TestSteadyFails has the work of one rank fail, or be interrupted: all learn that at once,
// and why, and hear no values.
func TestSteadyFails(t *testing.T) {
	t.Parallel()
	const n, victim = 4, 2
	broken := errors.New("the disk is full")
	for _, interrupted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				if interrupted && tr.Rank() == victim {
					time.AfterFunc(time.Minute, func() { cancel(broken) })
				}
				all, err := collective.SteadyValues(ctx, tr, 10*time.Second, func(ctx context.Context) (int, error) {
					switch {
					case tr.Rank() == 0:
						return 5, nil
					case tr.Rank() == victim && !interrupted:
						time.Sleep(time.Minute)
						return 5, broken
					}
					<-ctx.Done()
					return 5, errors.New("ended")
				})
				aborted := new(transport.AbortError)
				heard := errors.As(err, &aborted)
				if all != nil || heard != (tr.Rank() != victim) || heard && aborted.Rank != victim || !strings.Contains(fmt.Sprint(err), broken.Error()) {
					t.Errorf("interrupted %v: rank %d: %v, %v", interrupted, tr.Rank(), all, err)
				}
				return nil
			})
			if took := time.Since(begun); took < time.Minute || took > time.Minute+time.Second {
				t.Errorf("interrupted %v: took %v", interrupted, took)
			}
		})
	}
}
