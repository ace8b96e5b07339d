package delay_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"volley/internal/delay"
	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
)

// TestTransport checks that delays and a bound of the rate break no promise.
func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
		group := make([]transport.Transport, n)
		for r, e := range local.New(n) {
			late := delay.New(t.Context(), e, func(*transport.Transfer) time.Duration { return time.Millisecond })
			group[r] = delay.Limit(t.Context(), late, 1<<30)
		}
		return group
	})
}

// post has rank 0 send rank 1 messages of one byte, the first an hour late and the others at once.
func post(ctx context.Context, group []*local.Endpoint, ports ...int) transport.Transport {
	sender := delay.New(ctx, group[0], func(x *transport.Transfer) time.Duration {
		if x.Parts[0][0] == 0 {
			return time.Hour
		}
		return 0
	})
	q := sender.NewQueue()
	for i, port := range ports {
		q.Post(&transport.Transfer{Rank: 1, Tag: transport.Tag{Port: port}, Parts: [][]byte{{byte(i)}}})
	}
	return sender
}

// TestOrder checks that a message without a delay stays behind a late one of its stream, and overtakes those of others.
func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		group, start := local.New(2), time.Now()
		post(t.Context(), group, 0, 0, 1)
		for _, c := range []struct {
			port  int
			want  byte
			after time.Duration
		}{{1, 2, 0}, {0, 0, time.Hour}, {0, 1, time.Hour}} {
			got := []byte{9}
			if err := transport.Receive(t.Context(), group[1], 0, transport.Tag{Port: c.port}, got); err != nil {
				t.Fatal(err)
			}
			if got[0] != c.want || time.Since(start) != c.after {
				t.Errorf("got %d after %v, want %d after %v", got[0], time.Since(start), c.want, c.after)
			}
		}
	})
}

// TestEnd checks that the end of a context ends delays, and that Close waits until all is sent.
func TestEnd(t *testing.T) {
	t.Parallel()
	for _, given := range []time.Duration{time.Minute, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), given)
			defer cancel()
			group, start := local.New(2), time.Now()
			if err := post(ctx, group, 0, 0).Close(); err != nil || time.Since(start) != min(given, time.Hour) {
				t.Errorf("closed after %v, error %v", time.Since(start), err)
			}
			for want := range byte(2) {
				got := []byte{9}
				if err := transport.Receive(t.Context(), group[1], 0, transport.Tag{}, got); err != nil || got[0] != want {
					t.Errorf("got %d, error %v; want %d", got[0], err, want)
				}
			}
		})
	}
}

// TestLimit counts the bytes that come at a rank, by a clock of the test: a message waits until those before it have had
// their time, to whomever they go, and what ranks say beside a plan does not wait. Time in which nothing is sent is lost.
func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		group, start := local.New(3), time.Now()
		const rate = 1000
		limited := delay.Limit(t.Context(), group[0], rate)
		q := limited.NewQueue()
		const plans = transport.ControlRounds
		sizes := []int{500, 1500, 2000, 10}
		for i, n := range sizes {
			q.Post(&transport.Transfer{Rank: 1 + i%2, Tag: transport.Tag{Round: plans + i}, Parts: [][]byte{make([]byte, n)}})
		}
		q.Post(&transport.Transfer{Rank: 1, Tag: transport.Tag{}, Parts: [][]byte{make([]byte, 100)}})
		expect := func(rank, round, n int, after time.Duration) {
			t.Helper()
			err := transport.Receive(t.Context(), group[rank], 0, transport.Tag{Round: round}, make([]byte, n))
			if err != nil || time.Since(start) != after {
				t.Errorf("round %d after %v, error %v; want %v", round, time.Since(start), err, after)
			}
		}
		expect(1, 0, 100, 0)
		sent := 0
		for i, n := range sizes {
			expect(1+i%2, plans+i, n, time.Duration(sent)*time.Second/rate)
			sent += n
		}
		time.Sleep(time.Hour) // this lets nothing go faster
		start = time.Now()
		for i := range 3 {
			q.Post(&transport.Transfer{Rank: 1, Tag: transport.Tag{Round: plans}, Parts: [][]byte{make([]byte, rate)}})
			expect(1, plans, rate, time.Duration(i)*time.Second)
		}
		if err := limited.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFarther checks that what a transport can do beside carrying messages is not lost.
func TestFarther(t *testing.T) {
	t.Parallel()
	group := local.New(2)
	limited := delay.Limit(t.Context(), group[0], 1)
	if _, ok := limited.(transport.CoreSharer); !ok || transport.Cores(limited) != transport.Cores(group[0]) || !transport.Overlaps(limited) {
		t.Error("cores")
	}
	if whom, err := limited.(transport.Inquirer).Inquire(t.Context(), 1); whom != -1 || err != nil {
		t.Errorf("waits for %d, error %v", whom, err)
	}
	bare := struct{ transport.Transport }{group[0]}
	if _, err := delay.Limit(t.Context(), bare, 1).(transport.Inquirer).Inquire(t.Context(), 1); err == nil {
		t.Error("it asks by nothing")
	}
}
