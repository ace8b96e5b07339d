package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley/transport"
	"volley/transport/faulty"
	"volley/transport/local"
	"volley/transport/transporttest"
)

// Neither no faults nor delays break a promise.
func TestTransport(t *testing.T) {
	for name, faults := range map[string][]faulty.Fault{
		"no faults": nil,
		"delay":     {faulty.Delay(faulty.Every(), time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
				group := make([]transport.Transport, n)
				for r, e := range local.New(n) {
					group[r] = faulty.New(e, faults...)
				}
				return group
			})
		})
	}
}

func TestString(t *testing.T) {
	pick := faulty.To(2, transport.Tag{Round: 3, Port: 1})
	for want, fault := range map[string]faulty.Fault{
		"drop send 4": faulty.Drop(faulty.Nth(4)),
		"drop the send to rank 2, round 3 port 1":                  faulty.Drop(pick),
		"delay every send by 10ms":                                 faulty.Delay(faulty.Every(), 10*time.Millisecond),
		"flip bit 7 of byte 5 of part 0 of send 4":                 faulty.Flip(faulty.Nth(4), 0, 5, 7),
		"truncate the send to rank 2, round 3 port 1 to 100 bytes": faulty.Truncate(pick, 100),
		"duplicate send 0":                                         faulty.Duplicate(faulty.Nth(0)),
		"hang from round 3 on":                                     faulty.Hang(3),
		"die at round 0":                                           faulty.Die(0),
	} {
		if got := fault.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Rank 0 sends three messages with one tag; rank 1 says what comes, of messages
// that have lost something only the lengths.
func TestMessages(t *testing.T) {
	tag := transport.Tag{Round: 3}
	first, second := faulty.Nth(0), faulty.Nth(1)
	for _, c := range []struct {
		faults []faulty.Fault
		want   string
		idle   string
	}{
		{nil, "ab+cde fg+hij kl+mno", "[]"},
		{[]faulty.Fault{faulty.Drop(second)}, "ab+cde kl+mno", "[]"},
		{[]faulty.Fault{faulty.Drop(faulty.To(1, tag))}, "", "[]"},
		{[]faulty.Fault{faulty.Drop(faulty.To(1, transport.Tag{}))}, "ab+cde fg+hij kl+mno",
			"[drop the send to rank 1, round 0 port 0]"},
		{[]faulty.Fault{faulty.Flip(second, 1, 2, 5)}, "ab+cde fg+hiJ kl+mno", "[]"},
		{[]faulty.Fault{faulty.Flip(faulty.Every(), 0, 0, 5), faulty.Flip(first, 0, 0, 0)}, "@b+cde Fg+hij Kl+mno", "[]"},
		{[]faulty.Fault{faulty.Flip(first, 2, 0, 0), faulty.Flip(first, 0, 2, 0), faulty.Flip(first, 0, 0, 8)},
			"ab+cde fg+hij kl+mno",
			"[flip bit 0 of byte 0 of part 2 of send 0 flip bit 0 of byte 2 of part 0 of send 0 flip bit 8 of byte 0 of part 0 of send 0]"},
		{[]faulty.Fault{faulty.Truncate(first, 3)}, "[2 1] fg+hij kl+mno", "[]"},
		{[]faulty.Fault{faulty.Truncate(first, 2)}, "[2 0] fg+hij kl+mno", "[]"},
		{[]faulty.Fault{faulty.Truncate(first, 1)}, "[1] fg+hij kl+mno", "[]"},
		{[]faulty.Fault{faulty.Truncate(first, 5)}, "ab+cde fg+hij kl+mno", "[truncate send 0 to 5 bytes]"},
		{[]faulty.Fault{faulty.Duplicate(second)}, "ab+cde fg+hij fg+hij kl+mno", "[]"},
		{[]faulty.Fault{faulty.Flip(second, 0, 0, 5), faulty.Duplicate(second)}, "ab+cde Fg+hij Fg+hij kl+mno", "[]"},
		{[]faulty.Fault{faulty.Delay(first, time.Second)}, "ab+cde fg+hij kl+mno", "[]"},
		{[]faulty.Fault{faulty.Delay(faulty.Every(), time.Second), faulty.Drop(first)}, "fg+hij kl+mno", "[]"},
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
				t.Errorf("%v: got %s, want %s", c.faults, got, c.want)
			}
			over := map[int]bool{}
			for range 3 {
				x, err := sendings.Wait(t.Context())
				if err != nil || over[x.ID] || &x.Parts[0][0] != &memory[x.ID] {
					t.Fatalf("%v: %+v is over, error %v; %v were", c.faults, x, err, over)
				}
				over[x.ID] = true
			}
			if string(memory) != "abcdefghijklmno" {
				t.Errorf("%v: the sender's memory is now %s", c.faults, memory)
			}
			if got := fmt.Sprint(sender.Idle()); got != c.idle {
				t.Errorf("%v: idle: %s, want %s", c.faults, got, c.idle)
			}
			if err := sender.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := local.New(2)
		slow, quick := transport.Tag{Port: 0}, transport.Tag{Port: 1}
		sender := faulty.New(group[0], faulty.Delay(faulty.Nth(0), time.Hour))
		start := time.Now()
		sendings := sender.NewQueue()
		sendings.Post(&transport.Transfer{Rank: 1, Tag: slow, Parts: [][]byte{{1}}},
			&transport.Transfer{Rank: 1, Tag: slow, Parts: [][]byte{{2}}}, &transport.Transfer{Rank: 1, Tag: quick, Parts: [][]byte{{3}}})
		for _, c := range []struct {
			tag   transport.Tag
			want  byte
			after time.Duration
		}{{quick, 3, 0}, {slow, 1, time.Hour}, {slow, 2, time.Hour}} {
			got := []byte{0}
			if err := transport.Receive(t.Context(), group[1], 0, c.tag, got); err != nil {
				t.Fatal(err)
			}
			if got[0] != c.want || time.Since(start) != c.after {
				t.Errorf("got %d after %v, want %d after %v", got[0], time.Since(start), c.want, c.after)
			}
		}
		for range 3 {
			if _, err := sendings.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDelayGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := local.New(2)
		sender := faulty.New(group[0], faulty.Delay(faulty.Every(), time.Hour))
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
		defer cancel()
		if err := transport.Send(ctx, sender, 1, transport.Tag{}); !errors.Is(err, enough) {
			t.Errorf("got error %v, want %v", err, enough)
		}
		if err := sender.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestHangAndDie(t *testing.T) {
	enough := errors.New("enough")
	for i, c := range []struct {
		fault faulty.Fault
		want  error
		after time.Duration // of a Wait
	}{
		{faulty.Hang(2), enough, time.Minute},
		{faulty.Die(2), faulty.ErrDead, 0},
		{faulty.Hang(2), enough, time.Minute},
		{faulty.Die(2), faulty.ErrDead, 0},
	} {
		byReceive := i >= 2
		synctest.Test(t, func(t *testing.T) {
			group := local.New(2)
			struck := faulty.New(group[0], faulty.Delay(faulty.Nth(1), time.Second), c.fault)
			ctx := func() context.Context {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
				t.Cleanup(cancel)
				return ctx
			}
			check := func(what string, wait func(context.Context) error) {
				t.Helper()
				start := time.Now()
				if err := wait(ctx()); !errors.Is(err, c.want) || time.Since(start) != c.after {
					t.Errorf("%v: %s: got error %v after %v, want %v after %v",
						c.fault, what, err, time.Since(start), c.want, c.after)
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
				t.Errorf("%v: in round 0: %v", c.fault, err)
			}

			delayed := post(1, false)
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
			check("delayed send begun before", delayed)
			check("send of round 0", post(0, false))

			struck.Abort(errors.New("nobody hears it"))
			for round := range 3 {
				if err := hear(round); !errors.Is(err, enough) {
					t.Errorf("%v: rank 1 receives from round %d: %v", c.fault, round, err)
				}
			}
			if idle := struck.Idle(); len(idle) != 0 {
				t.Errorf("%v: idle: %v", c.fault, idle)
			}
			if err := struck.Close(); err != nil {
				t.Error(err)
			}
			if err := transport.Send(ctx(), group[1], 0, transport.Tag{}); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("%v: Close did not close the transport below: %v", c.fault, err)
			}
		})
	}
}

func Example() {
	group := local.New(2)
	tag := transport.Tag{Round: 0, Port: 0}
	sender := faulty.New(group[0], faulty.Flip(faulty.To(1, tag), 0, 4, 0))

	sender.NewQueue().Post(&transport.Transfer{Rank: 1, Tag: tag, Parts: [][]byte{[]byte("good luck")}})
	got := make([]byte, 9)
	err := transport.Receive(context.Background(), group[1], 0, tag, got)
	fmt.Printf("%s, %v, never struck: %v\n", got, err, sender.Idle())
	// Output: good!luck, <nil>, never struck: []
}
