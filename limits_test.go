package volley

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"volley/field/fieldtest"
	"volley/matrix"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// A narrow transport has few tags, and no message with another one goes.
type narrow struct {
	transport.Around
	limits transport.Limits
	posts  *atomic.Int64
	last   *atomic.Int64 // the largest round
}

func (n *narrow) Limits() transport.Limits { return n.limits }

func (n *narrow) NewQueue() transport.Queue { return &narrowQueue{n.Around.NewQueue(), n} }

type narrowQueue struct {
	transport.Queue
	of *narrow
}

func (q *narrowQueue) Post(list ...*transport.Transfer) {
	for _, x := range list {
		q.of.posts.Add(1)
		fits := func(b transport.Block) bool { return x.Tag.Round < b.Rounds && x.Tag.Port < b.Ports }
		if x.Tag.Round >= transport.ControlRounds && !slices.ContainsFunc(q.of.limits[:], fits) {
			panic(fmt.Sprintf("a message of %v", x.Tag))
		}
		for last := q.of.last.Load(); int64(x.Tag.Round) > last && !q.of.last.CompareAndSwap(last, int64(x.Tag.Round)); {
			last = q.of.last.Load()
		}
	}
	q.Queue.Post(list...)
}

func (q *narrowQueue) Gather(receives int) { transport.Gather(q.Queue, receives) }

// within returns limits of that many rounds and ports of plans.
func within(rounds, ports int) transport.Limits {
	return transport.Limits{{Rounds: transport.ControlRounds + rounds, Ports: ports}}
}

// runNarrow runs each rank over a transport with the limits. It returns the errors of the ranks, how many transfers were
// posted, and the largest round of them.
func runNarrow(t *testing.T, ranks int, limits transport.Limits, rank func(ctx context.Context, tr transport.Transport) error) (errs []error, posts, last int) {
	t.Helper()
	errs = make([]error, ranks)
	var count, round atomic.Int64
	local.Run(t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
		errs[tr.Rank()] = rank(ctx, &narrow{transport.Around{Transport: tr}, limits, &count, &round})
		return nil
	})
	return errs, int(count.Load()), int(round.Load())
}

// TestLimits has the planner keep to what transports carry, in all models: fewer ports than it would take, or rounds.
func TestLimits(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	memory := sim.Network{Overhead: time.Microsecond}
	far, err := sim.ParseNetwork("10gbit/20us")
	if err != nil {
		t.Fatal(err)
	}
	far.Latency = time.Second
	models := map[string][]Option{
		"default":   nil,
		"far":       {WithNetwork(far)},
		"memory":    {WithNetwork(memory), WithGamma(1e-9)},
		"paper":     {WithPaperModel(1, DefaultBeta, DefaultTau)},
		"paper p=7": {WithPaperModel(7, DefaultBeta, DefaultTau)},
		"messages":  {WithPaperModel(1, 0, DefaultTau)},
	}
	kept := 0 // plans that are others because of the limits
	for _, shape := range [][2]int{{8, 8}, {12, 12}, {20, 3}, {3, 20}} {
		a, err := matrix.Cauchy(f, shape[0], shape[1])
		if err != nil {
			t.Fatal(err)
		}
		for name, model := range models {
			for _, limits := range []transport.Limits{within(100, 2), within(5, 30), within(6, 1), {{Rounds: 16 + 6, Ports: 2}, {Rounds: 16 + 2, Ports: 30}}} {
				what := fmt.Sprintf("K = %d, R = %d, %s, %v", shape[0], shape[1], name, limits)
				e, err := NewEncoder(t.Context(), a, append(slices.Clone(model), WithPacketBytes(64))...)
				if err != nil {
					t.Fatal(err)
				}
				free, err := e.Plan(t.Context(), nil, 64)
				if err != nil {
					t.Fatal(err)
				}
				k := e.Problem().Processors()
				reports := make([]*Report, k)
				errs, _, _ := runNarrow(t, k, limits, func(ctx context.Context, tr transport.Transport) (err error) {
					var p Packet
					if _, source := e.Problem().Source(tr.Rank()); source {
						p.Data = make([]byte, 64)
						p.Data[tr.Rank()%64] = byte(1 + tr.Rank())
					}
					if _, sink := e.Problem().Sink(tr.Rank()); sink {
						p.Result = new([]byte)
					}
					reports[tr.Rank()], err = e.Run(ctx, tr, p)
					return err
				})
				if err := errors.Join(errs...); err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				r := Merge(reports)
				if !r.Verified || limits.Carry(r.C1, r.Ports) != nil {
					t.Errorf("%s: %d rounds of %d ports, verified %v", what, r.C1, r.Ports, r.Verified)
				}
				switch i := free.Info(); {
				case limits.Carry(i.Rounds(), i.Ports) != nil:
					kept++
				case r.Algorithm != i.Algorithm || r.Ports != i.Ports || r.C1 != i.Rounds():
					t.Errorf("%s: it takes %s with %d ports, and the limits allow %s with %d", what, r.Algorithm, r.Ports, i.Algorithm, i.Ports)
				}
			}
		}
	}
	if kept < 20 {
		t.Errorf("%d plans keep to the limits that would not without", kept)
	}
}

// TestLimitsOfLanes has two segments under way where there are tags for both, and else one.
func TestLimitsOfLanes(t *testing.T) {
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ rounds, last int }{{2, 1}, {3, 1}, {4, 3}} {
		e, err := NewEncoder(t.Context(), a, WithPaperModel(1, DefaultBeta, DefaultTau), WithAlgorithm("universal:2,2"), WithCheck(false), WithMemory(2<<20))
		if err != nil {
			t.Fatal(err)
		}
		errs, _, last := runNarrow(t, 4, within(x.rounds, 1), func(ctx context.Context, tr transport.Transport) error {
			_, r, err := e.Encode(ctx, tr, make([]byte, 9<<20))
			if err == nil && r.Segments < 3 {
				t.Errorf("%d segments", r.Segments)
			}
			return err
		})
		if err := errors.Join(errs...); err != nil || last != transport.ControlRounds+x.last {
			t.Errorf("tags of %d rounds: the last one is %d, want %d: %v", x.rounds, last-transport.ControlRounds, x.last, err)
		}
	}
}

// TestLimitsOfGiven has plans that are given, of too many rounds or ports. They are refused at all ranks alike, before
// anything is sent.
func TestLimitsOfGiven(t *testing.T) {
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), 6, 6)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		ports         int
		limits        transport.Limits
		want          string
		rounds, width int
	}{
		{1, within(2, 9), "volley: cannot use the plan: it needs 3 rounds, and the messages of the transport have 2 at most with 1 port: take a plan with fewer rounds", 3, 1},
		{5, within(9, 4), "volley: cannot use the plan: it needs 5 ports a round, and the messages of the transport have 4 at most: take a plan with fewer ports", 1, 5},
		{1, within(3, 1), "", 0, 0},
		{5, within(1, 5), "", 0, 0},
	} {
		p := given(t, a, WithAlgorithm("universal"), WithPaperModel(x.ports, DefaultBeta, DefaultTau))
		for _, ranks := range []int{6, 2} {
			errs, posts, _ := runNarrow(t, ranks, x.limits, func(ctx context.Context, tr transport.Transport) error {
				e, err := NewEncoder(t.Context(), a, WithPlan(p))
				if err != nil {
					t.Error(err)
					return nil
				}
				var packets []Packet
				for range 6 / ranks {
					packets = append(packets, Packet{Data: make([]byte, 64), Result: new([]byte)})
				}
				_, err = e.Run(ctx, tr, packets...)
				return err
			})
			for rank, err := range errs {
				limit, text := new(transport.LimitsError), ""
				if err != nil {
					text = err.Error()
				}
				refused := errors.As(err, new(*PlanError)) && errors.As(err, &limit) && IsInputError(err) && limit.Rounds == x.rounds && limit.Ports == x.width
				if text != x.want || refused != (x.want != "") {
					t.Errorf("%d ports, %v: rank %d of %d: %v, want %q", x.ports, x.limits, rank, ranks, err, x.want)
				}
			}
			if x.want != "" && posts > 0 {
				t.Errorf("%d ports, %v: %d messages were posted", x.ports, x.limits, posts)
			}
		}
		e, err := NewEncoder(t.Context(), a, WithPlan(p))
		if err != nil {
			t.Fatal(err)
		}
		one := &narrow{transport.Around{Transport: local.New(1)[0]}, x.limits, new(atomic.Int64), new(atomic.Int64)}
		packets := make([]Packet, 6)
		for i := range packets {
			packets[i] = Packet{Data: make([]byte, 64), Result: new([]byte)}
		}
		if _, err := e.Run(t.Context(), one, packets...); err != nil { // it sends nothing
			t.Error(err)
		}
	}
}

// TestLimitsOfNamed names an algorithm all of whose plans have too many rounds.
func TestLimitsOfNamed(t *testing.T) {
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), 6, 6)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(t.Context(), a, WithAlgorithm("universal"), WithPaperModel(1, DefaultBeta, DefaultTau))
	if err != nil {
		t.Fatal(err)
	}
	errs, _, last := runNarrow(t, 6, within(2, 1), func(ctx context.Context, tr transport.Transport) error {
		_, _, err := e.Encode(ctx, tr, make([]byte, 64))
		return err
	})
	for rank, err := range errs {
		if !errors.As(err, new(*transport.LimitsError)) || !IsInputError(err) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if last >= transport.ControlRounds {
		t.Errorf("there is a message of round %d of a plan", last-transport.ControlRounds)
	}
}

// TestLimitsOfMPI has what tags of MPI cannot carry: rounds of the first plan in two lanes, and ports of the others. The
// limits are those that TestTags of package mpi has.
func TestLimitsOfMPI(t *testing.T) {
	limits := transport.Limits{{Rounds: 8192, Ports: 64}, {Rounds: 512, Ports: 1024}}
	over := &narrow{Around: transport.Around{Transport: local.New(2)[0]}, limits: limits}
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), 128, 16)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(t.Context(), a, WithPaperModel(1, DefaultBeta, DefaultTau))
	if err != nil {
		t.Fatal(err)
	}
	const bytes = 1 << 30
	free, err := e.choose(t.Context(), e.model(bytes), transport.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.choose(t.Context(), e.model(bytes), limits)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		*chosenPlan
		ahead bool
	}{{free, true}, {c, false}} {
		if x.Info().Algorithm != "helpers" || x.Info().Rounds() != 4191 {
			t.Errorf("%s with %d rounds: the case has gone", x.Info().Algorithm, x.Info().Rounds())
		}
		if _, ahead, err := x.segment(bytes, e.options.memory, 64, 128, true); err != nil || ahead != x.ahead {
			t.Errorf("%v: two segments under way: %v, %v", x.tags, ahead, err)
		}
	}
	small := transport.Limits{{Rounds: 4095, Ports: 64}}
	if c, err = e.choose(t.Context(), e.model(bytes), small); err != nil || small.Carry(c.Info().Rounds(), c.Info().Ports) != nil {
		t.Errorf("few tags: %v", err)
	}

	f := fieldtest.Parse(t, "2^16")
	n := sim.Network{Latency: time.Millisecond, Overhead: 300 * time.Nanosecond, Gap: 0.1e-9}
	for _, k := range []int{1100, 2048} {
		a, err := matrix.Random(f, k, k, 1)
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEncoder(t.Context(), a, WithNetwork(n))
		if err != nil {
			t.Fatal(err)
		}
		free, err := e.Plan(t.Context(), nil, 64)
		if err != nil {
			t.Fatal(err)
		}
		if free.Info().Ports <= 1024 {
			t.Errorf("K = %d: %d ports: the case has gone", k, free.Info().Ports)
		}
		p, err := e.Plan(t.Context(), over, 64)
		if err != nil {
			t.Fatal(err)
		}
		if err := limits.Carry(p.Info().Rounds(), p.Info().Ports); err != nil {
			t.Errorf("K = %d: %v", k, err)
		}
	}
}
