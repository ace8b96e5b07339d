package tcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"volley/transport"
	"volley/transport/transporttest"
)

// member is a rank whose Close closes its listener as well.
type member struct {
	*Endpoint
}

func (m member) Close() error {
	err := m.Endpoint.Close()
	m.listener.Close()
	return err
}

// newRun returns the ranks of a run on loopback, which are closed at the end of the test.
func newRun(t testing.TB, n int, limits Patience) []transport.Transport {
	limits.Dial = cmp.Or(limits.Dial, transporttest.Limit) // many ranks are slow in one process
	listeners, addresses := make([]*Listener, n), make([]string, n)
	for r := range n {
		at, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		listeners[r], addresses[r] = Serve(at, nil, limits, nil), at.Addr().String()
	}
	run := make([]transport.Transport, n)
	for r, l := range listeners {
		m := member{l.Join(r, addresses, "test")}
		t.Cleanup(func() { m.Close() })
		run[r] = m
	}
	return run
}

// never are limits that are too long to be waited for.
var never = Patience{Abort: 2 * transporttest.Limit, Close: 2 * transporttest.Limit}

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport { return newRun(t, n, never) })
}

// TestInquire asks a rank that has never been connected, and after an abort.
func TestInquire(t *testing.T) {
	t.Parallel()
	run := newRun(t, 2, Patience{})
	asks := run[0].(transport.Inquirer)
	if whom, err := asks.Inquire(t.Context(), 1); whom != -1 || err != nil {
		t.Errorf("rank 1 waits for %d, %v", whom, err)
	}
	run[0].Abort(errors.New("stopped"))
	if whom, err := asks.Inquire(context.Background(), 1); whom != -1 || !errors.As(err, new(*transport.AbortError)) {
		t.Errorf("after an abort rank 1 waits for %d, %v", whom, err)
	}
}

// runs reports whether some goroutine is in a function.
func runs(function string) bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(function))
}

// A rank that ends after an abort is not taken for its cause by those who have not heard of it.
func TestCauseOfEnd(t *testing.T) {
	t.Run("before the others reach it", func(t *testing.T) {
		for name, end := range map[string]func(member) error{"": member.Close, ", but listens": func(m member) error { return m.Endpoint.Close() }} {
			run := newRun(t, 3, Patience{Abort: transporttest.Limit})
			end(run[2].(member))
			heard := make(chan error)
			go func() { heard <- transport.Send(t.Context(), run[1], 2, transport.Tag{}, make([]byte, 2*headBytes)) }()
			for deadline := time.Now().Add(transporttest.Limit); !runs("hearAbort") && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			run[0].Abort(errors.New("the cause"))
			if err := <-heard; fmt.Sprint(err) != "rank 0 stopped: the cause" {
				t.Errorf("rank 2 has ended%s: %v", name, err)
			}
		}
	})
	t.Run("and passes the abort on", func(t *testing.T) {
		run := newRun(t, 3, Patience{})
		first, second := call(t, run[2], 0), call(t, run[2], 1)
		first.say(t, forged(headFrame, 0, 0, 0, ""))
		if err := transport.Receive(t.Context(), run[2], 0, transport.Tag{}); err != nil {
			t.Fatal(err) // rank 0 is connected now
		}
		second.say(t, forged(abortFrame, 1, 0, 0, "the cause"))
		transport.Receive(t.Context(), run[2], 1, transport.Tag{})
		var closed sync.WaitGroup
		for _, e := range run {
			closed.Go(func() { e.Close() })
		}
		var kinds []kind
		for !slices.Contains(kinds, byeFrame) {
			f, text, err := first.hear()
			must(t, err)
			kinds = append(kinds, f.kind)
			if f.kind == abortFrame && (f.a != 1 || text != "the cause") {
				t.Errorf("rank %d stopped: %s", f.a, text)
			}
		}
		if !slices.Equal(kinds, []kind{abortFrame, byeFrame}) {
			t.Errorf("frames of kinds %v", kinds)
		}
		first.say(t, forged(goneFrame, 0, 0, 0, ""))
		second.say(t, forged(goneFrame, 0, 0, 0, ""))
		closed.Wait()
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
