package tune_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"volley/field"
	"volley/field/fieldtest"
	"volley/sim"
	"volley/transport"
	"volley/transport/faulty"
	"volley/transport/local"
	"volley/tune"
)

// network is a group in which a message of n bytes takes beta + n·tau.
type network struct {
	size   int
	beta   time.Duration
	tau    float64 // seconds per byte
	mu     sync.Mutex
	queues map[string]chan *message
}

type message struct {
	parts    [][]byte
	arrives  time.Time
	released chan struct{}
}

func (n *network) queue(src, dst int, tag transport.Tag) chan *message {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := fmt.Sprint(src, dst, tag)
	if n.queues[key] == nil {
		n.queues[key] = make(chan *message, 16)
	}
	return n.queues[key]
}

type end struct {
	*network
	rank int
}

func (e end) Rank() int    { return e.rank }
func (e end) Size() int    { return e.size }
func (e end) Abort(error)  {}
func (e end) Close() error { return nil }

// A line is a queue of the network.
type line struct {
	end
	over chan *transport.Transfer
}

func (e end) NewQueue() transport.Queue { return line{e, make(chan *transport.Transfer, 64)} }

func (l line) Post(transfers ...*transport.Transfer) {
	for _, t := range transfers {
		if t.Receive {
			from := l.queue(t.Rank, l.rank, t.Tag)
			go func() {
				m := <-from
				time.Sleep(time.Until(m.arrives))
				copy(t.Parts[0], m.parts[0])
				close(m.released)
				l.over <- t
			}()
			continue
		}
		takes := l.beta + time.Duration(math.Round(float64(t.Bytes())*l.tau*1e9))
		m := &message{t.Parts, time.Now().Add(takes), make(chan struct{})}
		l.queue(l.rank, t.Rank, t.Tag) <- m
		go func() {
			<-m.released
			l.over <- t
		}()
	}
}

func (l line) Wait(context.Context) (*transport.Transfer, error) { return <-l.over, nil }

// slow is a field whose multiply-adds take some time for each byte.
type slow struct {
	field.Field
	gamma float64
}

func (f slow) Combine(dst []byte, coef []field.Element, _ [][]byte) {
	time.Sleep(time.Duration(math.Round(float64(len(coef)*len(dst)) * f.gamma * 1e9)))
}

// TestVirtual measures networks in virtual time.
func TestVirtual(t *testing.T) {
	for _, c := range []struct {
		ranks, ports int
		beta         time.Duration
		tau, gamma   float64
	}{
		{2, 1, 20 * time.Microsecond, 8e-10, 0.25e-9},
		{2, 7, 20 * time.Microsecond, 8e-10, 0.25e-9}, // ports that it has not
		{5, 1, time.Microsecond, 2e-9, 0.4e-9},
		{5, 3, 700 * time.Microsecond, 1e-8, 0.5e-9},
		{8, 2, 50 * time.Microsecond, 1e-9, 0.5e-9},
	} {
		t.Run(fmt.Sprintf("ranks=%d/ports=%d", c.ranks, c.ports), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 300 * time.Millisecond
				fields := []field.Field{slow{fieldtest.Parse(t, "2^8"), c.gamma}, slow{fieldtest.Parse(t, "257"), 3 * c.gamma}}
				n := &network{size: c.ranks, beta: c.beta, tau: c.tau, queues: map[string]chan *message{}}
				results := make([]*tune.Result, c.ranks)
				start := time.Now()
				var ranks sync.WaitGroup
				for rank := range results {
					ranks.Go(func() {
						time.Sleep(time.Duration(rank) * time.Millisecond) // they need not begin together
						r, err := tune.Measure(t.Context(), end{n, rank}, fields, tune.WithTime(limit), tune.WithPorts(c.ports), tune.WithName("virtual"))
						if err != nil {
							t.Error(err)
							return
						}
						results[rank] = r
					})
				}
				ranks.Wait()
				if t.Failed() {
					return
				}
				took := time.Since(start)
				r := results[0]
				for rank, other := range results {
					same := *other
					same.Date = r.Date
					if !reflect.DeepEqual(&same, r) {
						t.Errorf("rank %d has other figures than rank 0:\n%+v\n%+v", rank, same, *r)
					}
				}
				if near := func(got, want float64) bool { return math.Abs(got-want) <= 0.01*want }; !near(r.BetaSeconds, c.beta.Seconds()) ||
					!near(r.TauSecondsPerByte, c.tau) || !near(r.Beta().Seconds(), c.beta.Seconds()) {
					t.Errorf("β = %v, τ = %v", r.BetaSeconds, r.TauSecondsPerByte)
				}
				if r.Residual > 0.001 || r.RSquared < 0.999 {
					t.Errorf("residual %v, R² = %v", r.Residual, r.RSquared)
				}
				for i, want := range []float64{c.gamma, 3 * c.gamma} {
					got := r.Coding[i]
					if math.Abs(got.Cached-want) > 0.001*want || math.Abs(got.Uncached-want) > 0.001*want || got.Spread != 0 {
						t.Errorf("γ = %v: %+v", want, got)
					}
				}
				gamma, ok := r.Gamma("257")
				if !ok || gamma != sim.PerByte(r.Coding[1].Cached) {
					t.Errorf("γ of 257: %v, %v", gamma, ok)
				}
				if _, ok := r.Gamma("2^9"); ok {
					t.Error("γ of 2^9 was not measured")
				}
				if r.Transport != "virtual" || r.Ranks != c.ranks || r.Ports != min(c.ports, c.ranks-1) || r.CPU == "" || r.CPUs < 1 || r.Host == "" {
					t.Errorf("%+v", r)
				}
				if took > 2*limit {
					t.Errorf("took %v, want about %v", took, limit)
				}
			})
		})
	}
}

// TestVirtualSlow checks that a network that can send next to nothing in the time
// there is gets a few small messages, not those of megabytes.
func TestVirtualSlow(t *testing.T) {
	for _, c := range []struct {
		beta time.Duration
		tau  float64
		most time.Duration
	}{
		{300 * time.Millisecond, 1e-6, 30 * time.Second},
		{time.Millisecond, 1e-5, 5 * time.Second}, // 4 MiB would take 42 s
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{size: 3, beta: c.beta, tau: c.tau, queues: map[string]chan *message{}}
			start := time.Now()
			var ranks sync.WaitGroup
			for rank := range n.size {
				ranks.Go(func() {
					r, err := tune.Measure(t.Context(), end{n, rank}, nil)
					if err != nil {
						t.Error(err)
						return
					}
					if math.Abs(r.BetaSeconds/c.beta.Seconds()-1) > 0.01 || math.Abs(r.TauSecondsPerByte/c.tau-1) > 0.01 {
						t.Errorf("β = %v, τ = %v", r.BetaSeconds, r.TauSecondsPerByte)
					}
					if len(r.Points) < 3 || len(r.Points) > 6 || len(r.Coding) > 0 {
						t.Errorf("%+v", r)
					}
				})
			}
			ranks.Wait()
			if took := time.Since(start); took > c.most {
				t.Errorf("took %v, want %v at most", took, c.most)
			}
		})
	}
}

// measureLocal measures with ranks in this process.
func measureLocal(ctx context.Context, n int, fields func(rank int) []field.Field, opts ...tune.Option) ([]*tune.Result, error) {
	results := make([]*tune.Result, n)
	err := local.Run(ctx, n, func(ctx context.Context, t transport.Transport) (err error) {
		results[t.Rank()], err = tune.Measure(ctx, t, fields(t.Rank()), opts...)
		return err
	})
	return results, err
}

// TestLocal checks what must be so of any machine.
func TestLocal(t *testing.T) {
	f := []field.Field{fieldtest.Parse(t, "2^8"), fieldtest.Parse(t, "2"), fieldtest.Parse(t, "goldilocks"), fieldtest.Parse(t, "bls12-381")}
	for _, n := range []int{2, 3} {
		results, err := measureLocal(t.Context(), n, func(int) []field.Field { return f }, tune.WithTime(50*time.Millisecond), tune.WithPorts(2))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if len(r.Points) < 3 || len(r.Coding) != len(f) || r.Transport != "local.Endpoint" || r.BetaSeconds <= 0 || r.TauSecondsPerByte < 0 {
				t.Errorf("%+v", r)
			}
			for i, c := range r.Coding {
				if c.Field != f[i].Name() || c.SymbolBytes != f[i].SymbolBytes() || c.Cached <= 0 || c.Uncached <= 0 {
					t.Errorf("%+v", c)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	none := func(int) []field.Field { return nil }
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	for _, c := range []struct {
		ctx    context.Context
		ranks  int
		fields func(int) []field.Field
		option tune.Option
		want   string
	}{
		{t.Context(), 1, none, tune.WithPorts(1), "1 ranks: want 2 or more"},
		{t.Context(), 2, none, tune.WithPorts(0), "0 ports: want 1 or more"},
		{t.Context(), 2, none, tune.WithTime(0), "time 0s: want more than 0"},
		{t.Context(), 5, func(rank int) []field.Field { return []field.Field{fieldtest.Parse(t, []string{"3", "5"}[rank/4])} }, tune.WithPorts(1), "different fields"},
		{canceled, 2, none, tune.WithPorts(1), "no time"},
	} {
		if _, err := measureLocal(c.ctx, c.ranks, c.fields, c.option); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %q", err, c.want)
		}
	}
}

// TestDeath checks that no rank waits for one that has failed.
func TestDeath(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := local.Run(ctx, 3, func(ctx context.Context, tr transport.Transport) error {
		if tr.Rank() == 1 {
			tr = faulty.New(tr, faulty.Die(1))
		}
		_, err := tune.Measure(ctx, tr, nil)
		if !errors.Is(err, faulty.ErrDead) && !errors.As(err, new(*transport.AbortError)) {
			t.Errorf("rank %d: %v", tr.Rank(), err)
		}
		if tr.Rank() == 1 {
			return errors.New("dead") // local.Run tells the others
		}
		return err
	})
	if err == nil || err.Error() != "dead" {
		t.Errorf("got error %v", err)
	}
}
