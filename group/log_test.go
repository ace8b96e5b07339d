package group_test

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"volley/engine"
	"volley/group"
	"volley/group/protection"
	"volley/transport/tcp"
	"volley/transport/transporttest"
)

// A failing handler fails the test with whatever is logged.
type failing struct{ *testing.T }

func (failing) Enabled(context.Context, slog.Level) bool { return true }
func (f failing) WithAttrs([]slog.Attr) slog.Handler     { return f }
func (f failing) WithGroup(string) slog.Handler          { return f }

func (f failing) Handle(_ context.Context, r slog.Record) error {
	f.Errorf("the default log gets %q", r.Message)
	return nil
}

// TestDefaultLog has ranks protect and recover directories while others knock: the default log of the program gets no line.
func TestDefaultLog(t *testing.T) {
	before, to, flags := slog.Default(), log.Writer(), log.Flags()
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(to) // which SetDefault changes
		log.SetFlags(flags)
	}()
	slog.SetDefault(slog.New(failing{t}))
	dirs, meet, secret := nodesIn(t), transporttest.Free(t), engine.NewSecret()
	knock := func() error {
		c, err := net.Dial("tcp", meet)
		if err != nil {
			return err
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
		io.Copy(io.Discard, c) // until it is refused
		return nil
	}
	keep := func(r int) error {
		run := engine.Run{Rank: r, Size: len(dirs), Meet: meet, Secret: secret, Limits: tcp.Patience{Refused: time.Millisecond}}
		run.Timeout = transporttest.Limit
		end, err := engine.Join(t.Context(), run)
		if err != nil {
			return err
		}
		defer end.Close()
		if err := knock(); err != nil {
			return err
		}
		g := group.Join(end, dirs[r:r+1], protection.Settings{Timeout: transporttest.Limit})
		if _, err := g.Protect(t.Context(), group.ProtectOptions{Tolerate: 1}); err != nil {
			return err
		}
		_, err = g.Recover(t.Context(), group.RecoverOptions{})
		return err
	}
	var ranks sync.WaitGroup
	for r := range dirs {
		ranks.Go(func() {
			if err := keep(r); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
}
