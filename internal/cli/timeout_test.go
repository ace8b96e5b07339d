package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley"
	"volley/coded"
	"volley/executor"
	"volley/field/fieldtest"
	"volley/group"
	"volley/group/buffers"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// TestTimeouts has one of two ranks come late, for everything that takes a timeout: one of 0 is none, a short one ends the
// wait, and one below 0 is refused.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	a, err := volley.MDS(2, 2)
	must(t, err)
	dense, err := matrix.Random(fieldtest.Parse(t, "2^8"), 2, 2, 1)
	must(t, err)
	dirs := writeNodes(t, 2, 100)
	for name, wait := range map[string]func(ctx context.Context, tr transport.Transport, timeout time.Duration) error{
		"Encode": func(ctx context.Context, tr transport.Transport, timeout time.Duration) error {
			_, _, err := volley.Encode(ctx, tr, a, []byte("abc"), volley.WithTimeout(timeout))
			return err
		},
		"Greet": func(ctx context.Context, tr transport.Transport, timeout time.Duration) error {
			return volley.Greet(ctx, tr, "wait", timeout)
		},
		"group": func(ctx context.Context, tr transport.Transport, timeout time.Duration) error {
			_, err := group.Join(tr, dirs[tr.Rank():tr.Rank()+1], protection.Settings{Timeout: timeout}).Status(ctx)
			return err
		},
		"buffers": func(ctx context.Context, tr transport.Transport, timeout time.Duration) error {
			return buffers.New(tr, buffers.Options{Settings: protection.Settings{Timeout: timeout}, Tolerate: 1}, []byte("abc")).Protect(ctx)
		},
		"coded": func(ctx context.Context, tr transport.Transport, timeout time.Duration) error {
			k := tr.Rank()
			_, _, err := coded.DecodePackets(ctx, tr, coded.MemoryDecoding{Matrix: dense, Timeout: timeout, Inputs: map[int][]byte{k: []byte("abc")}})
			return err
		},
	} {
		run := func(timeout time.Duration) (err error) {
			synctest.Test(t, func(t *testing.T) {
				err = local.Run(t.Context(), 2, func(ctx context.Context, tr transport.Transport) error {
					if tr.Rank() == 1 && timeout >= 0 {
						time.Sleep(time.Hour)
					}
					return wait(ctx, tr, timeout)
				})
			})
			return err
		}
		if err := run(0); err != nil {
			t.Errorf("%s, 0: %v", name, err)
		}
		if err := run(time.Minute); !errors.Is(err, executor.ErrTimeout) {
			t.Errorf("%s, a minute: %v", name, err)
		}
		if err := run(-1); err == nil || exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "timeout -1ns: want 0 or more") {
			t.Errorf("%s, -1: %v", name, err)
		}
	}
}
