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

// TestSteady has one rank work for longer than three timeouts: nobody gives up, and all
// return when it has ended.
func TestSteady(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 5} {
		for _, timeout := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 10 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				long := max(3*timeout+timeout/3, time.Microsecond)
				begun := time.Now()
				var worked atomic.Int32
				err := local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
					err := collective.Steady(ctx, tr, timeout, func(ctx context.Context) error {
						if tr.Rank() == n/2 {
							time.Sleep(long)
						}
						worked.Add(1)
						return ctx.Err()
					})
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
				if err == nil && fmt.Sprint(all) != "[[7 0] [7 1] [7 2]]" {
					err = fmt.Errorf("rank %d hears %v", tr.Rank(), all)
				}
				if err != nil {
					return err
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

// TestSteadyTimeouts gives ranks timeouts that differ.
func TestSteadyTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timeouts := []time.Duration{2 * time.Second, time.Hour, 0}
		err := local.Run(t.Context(), len(timeouts), func(ctx context.Context, tr transport.Transport) error {
			return collective.Steady(ctx, tr, timeouts[tr.Rank()], func(context.Context) error {
				time.Sleep(time.Minute)
				return nil
			})
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
// and why.
func TestSteadyFails(t *testing.T) {
	t.Parallel()
	const n, victim = 4, 2
	broken := errors.New("the disk is full")
	for _, interrupted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
				if interrupted && tr.Rank() == victim {
					var cancel context.CancelCauseFunc
					ctx, cancel = context.WithCancelCause(ctx)
					time.AfterFunc(time.Minute, func() { cancel(broken) })
				}
				err := collective.Steady(ctx, tr, 10*time.Second, func(ctx context.Context) error {
					switch {
					case tr.Rank() == 0:
						return nil
					case tr.Rank() == victim && !interrupted:
						time.Sleep(time.Minute)
						return broken
					}
					<-ctx.Done()
					return fmt.Errorf("ended")
				})
				aborted := new(transport.AbortError)
				switch heard := errors.As(err, &aborted); {
				case tr.Rank() == victim && (heard || !errors.Is(err, broken)),
					tr.Rank() != victim && (!heard || aborted.Rank != victim || !strings.Contains(err.Error(), broken.Error())):
					t.Errorf("interrupted %v: rank %d: %v", interrupted, tr.Rank(), err)
				}
				return nil
			})
			if took := time.Since(begun); took < time.Minute || took > time.Minute+time.Second {
				t.Errorf("interrupted %v: took %v", interrupted, took)
			}
		})
	}
}

// TestSteadyValues gives the values of all ranks to all, short and long ones, however long one takes.
func TestSteadyValues(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 9} {
		for _, most := range []int{0, 100, 600, 5000} {
			synctest.Test(t, func(t *testing.T) {
				err := local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
					all, err := collective.SteadyValues(ctx, tr, time.Second, func(context.Context) (string, error) {
						if tr.Rank() == n/2 {
							time.Sleep(time.Minute)
						}
						return strings.Repeat("x", most*tr.Rank()/n), nil
					})
					for r, x := range all {
						if len(x) != most*r/n {
							t.Errorf("%d ranks: rank %d hears %d bytes of rank %d, want %d", n, tr.Rank(), len(x), r, most*r/n)
						}
					}
					if len(all) != n {
						t.Errorf("%d ranks: rank %d hears %d", n, tr.Rank(), len(all))
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestSteadyValuesFail lets the work of one rank fail: it returns its error, and the others that it has stopped.
func TestSteadyValuesFail(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	var errs [4]error
	local.Run(t.Context(), 4, func(ctx context.Context, tr transport.Transport) error {
		all, err := collective.SteadyValues(ctx, tr, time.Minute, func(context.Context) (int, error) {
			if tr.Rank() == 2 {
				return 5, full
			}
			return 5, nil
		})
		if errs[tr.Rank()] = err; all != nil {
			t.Errorf("rank %d hears %v", tr.Rank(), all)
		}
		return nil
	})
	for r, err := range errs {
		if stopped := new(transport.AbortError); r == 2 && err != full || r != 2 && (!errors.As(err, &stopped) || stopped.Rank != 2) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
