package tune_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"volley"
	"volley/algo"
	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/delay"
	"volley/internal/faulty"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
	"volley/tune"
)

// A link is one rank's of a network with one link per node: messages of o and G for each
// byte leave one after the other, and arrive L later.
type link struct {
	network sim.Network
	gap     float64    // G, in seconds
	free    time.Time  // when the last message has left
	uneven  *rand.Rand // unless nil, makes messages take up to twice as long
}

// delay returns how long a message takes.
func (l *link) delay(t *transport.Transfer) time.Duration {
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(l.network.Overhead + time.Duration(math.Round(float64(t.Bytes())*l.gap*1e9)))
	latency := l.network.Latency
	if l.uneven != nil {
		latency += time.Duration(l.uneven.Int64N(int64(latency)))
	}
	return l.free.Add(latency).Sub(now)
}

// onLinks calls f for all ranks of a network, and returns its errors. Where they are uneven, messages
// take up to twice as long.
func onLinks(k int, n sim.Network, uneven bool, f func(rank int, t transport.Transport) error) []error {
	errs := make([]error, k)
	var ranks sync.WaitGroup
	for rank, end := range local.New(k) {
		l := &link{network: n, gap: float64(n.Gap(1))}
		if uneven {
			l.uneven = rand.New(rand.NewPCG(uint64(rank), 1))
		}
		ranks.Go(func() {
			t := delay.New(context.Background(), end, l.delay)
			errs[rank] = errors.Join(f(rank, t), t.Close())
		})
	}
	ranks.Wait()
	return errs
}

// measureLinks measures a network among k ranks. Rank r begins r milliseconds late.
func measureLinks(t *testing.T, k int, n sim.Network, fields []field.Field, d time.Duration) []*tune.Result {
	results := make([]*tune.Result, k)
	err := errors.Join(onLinks(k, n, false, func(rank int, l transport.Transport) (err error) {
		time.Sleep(time.Duration(rank) * time.Millisecond)
		results[rank], err = tune.Measure(t.Context(), l, tune.Platform{Transport: "virtual", Hosts: []string{"here"}}, fields, d, nil)
		return err
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

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
	t.Parallel()
	for _, c := range []struct {
		ranks int
		sim.Network
		gamma float64
	}{
		{2, network("2us", "1us", 8e-9), 0.25e-9},
		{5, network("20us", "2us", 2e-8), 0.4e-9},
		{5, network("0s", "5us", 2e-8), 0.4e-9},
		{8, network("700us", "20us", 1e-8), 0.5e-9},
		{16, network("50us", "0s", 1e-8), 0.5e-9},
	} {
		t.Run(fmt.Sprintf("ranks=%d/%v", c.ranks, c.Latency), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const limit = 600 * time.Millisecond
				fields := []field.Field{slow{fieldtest.Parse(t, "2^8"), c.gamma}, slow{fieldtest.Parse(t, "257"), 3 * c.gamma}}
				start := time.Now()
				results := measureLinks(t, c.ranks, c.Network, fields, limit)
				took := time.Since(start)
				r := results[0]
				for rank, other := range results {
					same := *other
					same.Date = r.Date
					if !reflect.DeepEqual(&same, r) {
						t.Errorf("rank %d has other figures than rank 0:\n%+v\n%+v", rank, same, *r)
					}
				}
				near := func(got, want float64) bool { return math.Abs(got-want) <= 0.001*want+2e-9 }
				if n := r.Network; !near(n.Latency.Seconds(), c.Latency.Seconds()) || !near(n.Overhead.Seconds(), c.Overhead.Seconds()) ||
					math.Abs(float64(n.Gap(1)/c.Gap(1))-1) > 0.001 || len(n.Gaps.Entries()) != 1 {
					t.Errorf("%v, want %v", n, c.Network)
				}
				if r.Beta() != r.Network.Latency+r.Network.Overhead || r.Tau() != r.Network.Gap(1) {
					t.Errorf("β = %v, τ = %v, with %v", r.Beta(), r.Tau(), r.Network)
				}
				if r.Residual() > 0.001 {
					t.Errorf("residual %v", r.Residual())
				}
				for i, want := range []float64{c.gamma, 3 * c.gamma} {
					got := r.Coding[i]
					if math.Abs(got.Cached-want) > 0.001*want || math.Abs(got.Uncached-want) > 0.001*want || got.Spread != 0 {
						t.Errorf("γ = %v: %+v", want, got)
					}
				}
				r.Coding[1].Uncached *= 2 // to tell them apart
				for bytes, want := range map[int64]float64{0: r.Coding[1].Cached, 512 << 10: r.Coding[1].Cached, 1 << 20: r.Coding[1].Uncached} {
					if gamma, ok := r.Gamma("257", bytes); !ok || gamma != sim.PerByte(want) {
						t.Errorf("γ of 257 and %d bytes: %v, %v", bytes, gamma, ok)
					}
				}
				if _, ok := r.Gamma("2^9", 0); ok {
					t.Error("γ of 2^9 was not measured")
				}
				if want := fmt.Sprintf("virtual, %d ranks on 1 host", c.ranks); r.Platform.String() != want || r.CPU == "" || r.CPUs < 1 {
					t.Errorf("%+v, want %s", r, want)
				}
				if took > 2*limit {
					t.Errorf("took %v, want about %v", took, limit)
				}
			})
		})
	}
}

func network(latency, overhead string, gap sim.PerByte) sim.Network {
	l, err := time.ParseDuration(latency)
	o, err2 := time.ParseDuration(overhead)
	if err != nil || err2 != nil {
		panic(errors.Join(err, err2))
	}
	return sim.Network{Latency: l, Overhead: o, Gaps: sim.Gaps{{Messages: 1, PerByte: gap}}}
}

// TestVirtualSlow checks that a network that can send next to nothing in the time
// there is gets a few small messages, not those of megabytes.
func TestVirtualSlow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sim.Network
		most time.Duration
	}{
		{network("300ms", "1ms", 1e-6), 90 * time.Second},
		{network("1ms", "0s", 1e-5), 50 * time.Second}, // 1 MiB takes 10 s
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			r := measureLinks(t, 3, c.Network, nil, time.Second)[0]
			if got := r.Network; math.Abs(got.Latency.Seconds()/c.Latency.Seconds()-1) > 0.01 || math.Abs(float64(got.Gap(1)/c.Gap(1))-1) > 0.01 {
				t.Errorf("%v, want %v", got, c.Network)
			}
			if most := r.Points[len(r.Points)-1].Bytes; len(r.Points) != 9 || most > 64<<10 || len(r.Coding) > 0 {
				t.Errorf("%+v", r)
			}
			if took := time.Since(start); took > c.most {
				t.Errorf("took %v, want %v at most", took, c.most)
			}
		})
	}
}

// TestVirtualUneven measures coding among ranks of which no two meetings take as long: a multiply-add takes 50 µs
// for a block, and a meeting up to half a second.
func TestVirtualUneven(t *testing.T) {
	t.Parallel()
	const gamma = 0.2e-9
	synctest.Test(t, func(t *testing.T) {
		fields := []field.Field{slow{fieldtest.Parse(t, "2^8"), gamma}}
		for _, err := range onLinks(8, network("60ms", "1ms", 1e-8), true, func(rank int, l transport.Transport) error {
			r, err := tune.Measure(t.Context(), l, tune.Platform{Transport: "virtual"}, fields, time.Second, nil)
			if err == nil && math.Abs(r.Coding[0].Cached/gamma-1) > 0.5 {
				t.Errorf("γ is %v, want %v", r.Coding[0].Cached, gamma)
			}
			return err
		}) {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// measureLocal measures with ranks in this process.
func measureLocal(ctx context.Context, n int, fields func(rank int) []field.Field, d time.Duration) ([]*tune.Result, error) {
	results := make([]*tune.Result, n)
	err := local.Run(ctx, n, func(ctx context.Context, t transport.Transport) (err error) {
		results[t.Rank()], err = tune.Measure(ctx, t, tune.Platform{Transport: "local"}, fields(t.Rank()), d, nil)
		return err
	})
	return results, err
}

// TestLocal checks what must be so of any machine.
func TestLocal(t *testing.T) {
	f := []field.Field{fieldtest.Parse(t, "2^8"), fieldtest.Parse(t, "2"), fieldtest.Parse(t, "goldilocks"), fieldtest.Parse(t, "bls12-381")}
	for _, n := range []int{2, 3} {
		results, err := measureLocal(t.Context(), n, func(int) []field.Field { return f }, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if len(r.Points) < 6 || len(r.Coding) != len(f) || r.Platform.String() != fmt.Sprintf("local, %d ranks", n) || r.Network.Validate() != nil || r.Beta() <= 0 {
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
	t.Parallel()
	none := func(int) []field.Field { return nil }
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	for _, c := range []struct {
		ctx    context.Context
		ranks  int
		fields func(int) []field.Field
		time   time.Duration
		want   string
	}{
		{t.Context(), 1, none, time.Second, "1 ranks: want 2 or more"},
		{t.Context(), 2, none, 0, "time 0s: want more than 0"},
		{t.Context(), 5, func(rank int) []field.Field { return []field.Field{fieldtest.Parse(t, []string{"3", "5"}[rank/4])} }, time.Second, "rank 4 differs from rank 0 in fields ("},
		{canceled, 2, none, time.Second, "no time"},
	} {
		if _, err := measureLocal(c.ctx, c.ranks, c.fields, c.time); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %q", err, c.want)
		}
	}
}

// TestDeath checks that no rank waits for one that has failed.
func TestDeath(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Limit)
	defer cancel()
	err := local.Run(ctx, 3, func(ctx context.Context, tr transport.Transport) error {
		if tr.Rank() == 1 {
			tr = faulty.New(tr, faulty.Die(1))
		}
		_, err := tune.Measure(ctx, tr, tune.Platform{}, nil, time.Second, nil)
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

// TestModel checks that runs take the time that the model with the measured network says, in
// virtual time, in which all else takes none.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, k := range []int{4, 8} {
		a, err := matrix.Random(fieldtest.Parse(t, "2^8"), k, k, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []sim.Network{network("20us", "2us", 8.5e-10), network("1ms", "20us", 8.5e-8)} {
			synctest.Test(t, func(t *testing.T) {
				got := measureLinks(t, k, n, nil, 300*time.Millisecond)[0].Network
				for _, name := range []string{"universal", "exchange", "bruck-allgather"} {
					algorithm, err := algo.Lookup(name)
					if err != nil {
						t.Fatal(err)
					}
					for _, ports := range []int{1, 3, k - 1} {
						problem, err := algo.NewProblem(a, ports, algo.Natural)
						if err != nil {
							t.Fatal(err)
						}
						plans, err := algorithm.Plans(problem)
						if err != nil {
							t.Fatal(err)
						}
						for _, p := range plans {
							for _, bytes := range []int{1 << 10, 64 << 10} {
								want := sim.Model{Network: got, Bytes: int64(bytes), SymbolBytes: 1}.Time(sim.Count(p))
								took := runLinks(t, k, n, p, a, bytes)
								// Rounds of an exchange that do not need each other overlap.
								overlap := name == "exchange" && ports < k-1
								if off := took.Seconds()/want.Seconds() - 1; off > 0.15 || off < -0.15 && !overlap {
									t.Errorf("K = %d, %v, %s p = %d, %s, %d bytes: took %v, the model says %v: %+.0f %%", k, n, name, ports, p.Info().Parameters, bytes, took, want, 100*off)
								}
							}
						}
					}
				}
			})
		}
	}
}

// runLinks returns what an encode by a plan takes the slowest rank, without the agreement.
func runLinks(t *testing.T, k int, n sim.Network, p plan.Plan, a matrix.Matrix, bytes int) time.Duration {
	e, err := volley.NewEncoder(t.Context(), a, volley.WithPlan(p), volley.WithCheck(false), volley.WithTimeout(0))
	if err != nil {
		t.Fatal(err)
	}
	took := make([]time.Duration, k)
	for rank, err := range onLinks(k, n, false, func(rank int, l transport.Transport) error {
		start := time.Now()
		r, err := e.Run(t.Context(), l, volley.Packet{Data: make([]byte, bytes), Result: new([]byte)})
		if err == nil {
			took[rank] = time.Since(start) - time.Duration(r.AgreeSeconds*1e9)
		}
		return err
	}) {
		if err != nil {
			t.Fatal(rank, err)
		}
	}
	return slices.Max(took)
}
