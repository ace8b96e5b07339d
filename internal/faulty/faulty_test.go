package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley/internal/faulty"
	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
)

// Without faults it keeps all promises.
func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
		group := make([]transport.Transport, n)
		for r, e := range local.New(n) {
			group[r] = faulty.New(e)
		}
		return group
	})
}

// Rank 0 sends three messages with one tag; rank 1 says what comes, of messages
// that have lost something only the lengths.
func TestMessages(t *testing.T) {
	t.Parallel()
	tag := transport.Tag{Round: 3}
	first, second := faulty.Nth(0), faulty.Nth(1)
	for i, c := range []struct {
		faults []faulty.Fault
		want   string
		idle   int
	}{
		{nil, "ab+cde fg+hij kl+mno", 0},
		{[]faulty.Fault{faulty.Drop(second)}, "ab+cde kl+mno", 0},
		{[]faulty.Fault{faulty.Drop(faulty.SendsTo(1, tag))}, "", 0},
		{[]faulty.Fault{faulty.Drop(faulty.SendsTo(1, transport.Tag{}))}, "ab+cde fg+hij kl+mno", 1},
		{[]faulty.Fault{faulty.Flip(second, 1, 2, 5)}, "ab+cde fg+hiJ kl+mno", 0},
		{[]faulty.Fault{faulty.Flip(faulty.EverySend, 0, 0, 5), faulty.Flip(first, 0, 0, 0)}, "@b+cde Fg+hij Kl+mno", 0},
		{[]faulty.Fault{faulty.Flip(first, 2, 0, 0), faulty.Flip(first, 0, 2, 0), faulty.Flip(first, 0, 0, 8)},
			"ab+cde fg+hij kl+mno", 3},
		{[]faulty.Fault{faulty.Truncate(first, 3)}, "[2 1] fg+hij kl+mno", 0},
		{[]faulty.Fault{faulty.Truncate(first, 2)}, "[2 0] fg+hij kl+mno", 0},
		{[]faulty.Fault{faulty.Truncate(first, 1)}, "[1] fg+hij kl+mno", 0},
		{[]faulty.Fault{faulty.Truncate(first, 5)}, "ab+cde fg+hij kl+mno", 1},
		{[]faulty.Fault{faulty.Duplicate(second)}, "ab+cde fg+hij fg+hij kl+mno", 0},
		{[]faulty.Fault{faulty.Flip(second, 0, 0, 5), faulty.Duplicate(second)}, "ab+cde Fg+hij Fg+hij kl+mno", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			group := local.New(2)
			sender := faulty.New(group[0], c.faults...)
			memory := []byte("abcdefghijklmno")
			sendings := sender.NewQueue()
			for at := 0; at < len(memory); at += 5 {
				sendings.Post(&transport.Transfer{Rank: 1, Tag: tag, Parts: [][]byte{memory[at : at+2], memory[at+2 : at+5]}, ID: at})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var got []string
			for {
				first, second := make([]byte, 2), make([]byte, 3)
				err := transport.Receive(ctx, group[1], 0, tag, first, second)
				if wrong, ok := errors.AsType[*transport.LengthError](err); ok {
					got = append(got, fmt.Sprint(wrong.Got))
					continue
				}
				if err != nil {
					break // a minute without a message
				}
				got = append(got, string(first)+"+"+string(second))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("case %d: got %s, want %s", i, got, c.want)
			}
			over := map[int]bool{}
			for range 3 {
				x, err := sendings.Wait(t.Context())
				if err != nil || over[x.ID] || &x.Parts[0][0] != &memory[x.ID] {
					t.Fatalf("case %d: %+v is over, error %v; %v were", i, x, err, over)
				}
				over[x.ID] = true
			}
			if string(memory) != "abcdefghijklmno" {
				t.Errorf("case %d: the sender's memory is now %s", i, memory)
			}
			if got := sender.Idle(); got != c.idle {
				t.Errorf("case %d: %d faults are idle, want %d", i, got, c.idle)
			}
			if err := sender.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHangAndDie(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for i, c := range []struct {
		name  string
		fault faulty.Fault
		want  error
		after time.Duration // of a Wait
	}{
		{"hang", faulty.Hang(2), enough, time.Minute},
		{"die", faulty.Die(2), faulty.ErrDead, 0},
		{"hang", faulty.Hang(2), enough, time.Minute},
		{"die", faulty.Die(2), faulty.ErrDead, 0},
	} {
		byReceive := i >= 2
		synctest.Test(t, func(t *testing.T) {
			group := local.New(2)
			struck := faulty.New(group[0], c.fault)
			ctx := func() context.Context {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
				t.Cleanup(cancel)
				return ctx
			}
			check := func(what string, wait func(context.Context) error) {
				t.Helper()
				start := time.Now()
				if err := wait(ctx()); !errors.Is(err, c.want) || time.Since(start) != c.after {
					t.Errorf("%s: %s: got error %v after %v, want %v after %v",
						c.name, what, err, time.Since(start), c.want, c.after)
				}
			}
			post := func(round int, receive bool) func(context.Context) error {
				q := struck.NewQueue()
				q.Post(&transport.Transfer{Rank: 1, Tag: transport.Tag{Round: round}, Receive: receive})
				return func(ctx context.Context) error {
					_, err := q.Wait(ctx)
					return err
				}
			}
			hear := func(round int) error {
				return transport.Receive(ctx(), group[1], 0, transport.Tag{Round: round})
			}

			early, ahead := post(0, false), post(2, true) // which does not strike yet
			if err := hear(0); err != nil {
				t.Fatal(err)
			}
			if err := early(ctx()); err != nil {
				t.Errorf("%s: in round 0: %v", c.name, err)
			}

			before := post(1, true)
			if byReceive {
				if err := transport.Send(ctx(), group[1], 0, transport.Tag{Round: 2}); err != nil {
					t.Fatal(err)
				}
				check("receive of round 2", ahead)
			}
			check("send of round 2", post(2, false))
			check("receive of round 2", ahead)
			check("receive begun before", before)
			check("send of round 0", post(0, false))

			struck.Abort(errors.New("nobody hears it"))
			for round := range 3 {
				if err := hear(round); !errors.Is(err, enough) {
					t.Errorf("%s: rank 1 receives from round %d: %v", c.name, round, err)
				}
			}
			if struck.Idle() != 0 {
				t.Errorf("%s: it never struck", c.name)
			}
			if err := struck.Close(); err != nil {
				t.Error(err)
			}
			if err := transport.Send(ctx(), group[1], 0, transport.Tag{}); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("%s: Close did not close the transport below: %v", c.name, err)
			}
		})
	}
}
