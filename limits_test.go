package volley

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

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
	far, err := sim.ParseNetwork("10gbit/20us")
	if err != nil {
		t.Fatal(err)
	}
	far.Latency = time.Second
	kept := 0 // plans that are others because of the limits
	for _, a := range []matrix.Matrix{mustBuild(t, "2^8", "cauchy", 12, 12), mustBuild(t, "2^8", "cauchy", 20, 3), mustBuild(t, "2^8", "cauchy", 3, 20)} {
		for name, model := range map[string][]Option{
			"default": nil, "far": {WithNetwork(far)}, "memory": {WithNetwork(sim.Network{Overhead: time.Microsecond}), WithGamma(1e-9)},
			"paper": {WithPaperModel(1, DefaultBeta, DefaultTau)}, "paper p=7": {WithPaperModel(7, DefaultBeta, DefaultTau)}, "messages": {WithPaperModel(1, 0, DefaultTau)},
		} {
			for _, limits := range []transport.Limits{within(100, 2), within(5, 30), within(6, 1), {{Rounds: 16 + 6, Ports: 2}, {Rounds: 16 + 2, Ports: 30}}} {
				e := newEncoder(t, a, model...)
				free, err := e.Plan(t.Context(), nil, 64)
				if err != nil {
					t.Fatal(err)
				}
				p, err := e.Plan(t.Context(), &narrow{Around: transport.Around{Transport: local.New(2)[0]}, limits: limits}, 64)
				if err != nil {
					t.Fatal(err)
				}
				switch i, j := free.Info(), p.Info(); {
				case limits.Carry(j.Rounds(), j.Ports) != nil:
					t.Errorf("%s, %v: %d rounds of %d ports", name, limits, j.Rounds(), j.Ports)
				case limits.Carry(i.Rounds(), i.Ports) != nil:
					kept++
				case i.Name() != j.Name():
					t.Errorf("%s, %v: it takes %s, and the limits allow %s", name, limits, j.Name(), i.Name())
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
	e := newEncoder(t, mustBuild(t, "2^8", "cauchy", 4, 4), WithPaperModel(1, DefaultBeta, DefaultTau), WithAlgorithm("universal:2,2"), WithCheck(false), WithMemory(2<<20))
	for _, x := range []struct{ rounds, last int }{{2, 1}, {3, 1}, {4, 3}} {
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

// TestLimitsRefused has plans of too many rounds or ports, that are given or of a named algorithm. They are refused at all
// ranks alike, before anything of them is sent. One rank sends nothing.
func TestLimitsRefused(t *testing.T) {
	a := mustBuild(t, "2^8", "cauchy", 6, 6)
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
		named := []Option{WithAlgorithm("universal"), WithPaperModel(x.ports, DefaultBeta, DefaultTau)}
		p, err := newEncoder(t, a, named...).Plan(t.Context(), nil, 64)
		if err != nil {
			t.Fatal(err)
		}
		for given, e := range map[bool]*Encoder{true: newEncoder(t, a, WithPlan(p)), false: newEncoder(t, a, named...)} {
			for _, ranks := range []int{6, 2, 1} {
				errs, posts, last := runNarrow(t, ranks, x.limits, func(ctx context.Context, tr transport.Transport) error {
					var packets []Packet
					for range 6 / ranks {
						packets = append(packets, Packet{Data: make([]byte, 64), Result: new([]byte)})
					}
					_, err := e.Run(ctx, tr, packets...)
					return err
				})
				refuses := x.want != "" && ranks > 1 && (given || x.width == 1) // else it takes fewer ports
				for rank, err := range errs {
					limit := new(transport.LimitsError)
					refused := errors.As(err, &limit) && IsInputError(err)
					exact := errors.As(err, new(*PlanError)) && fmt.Sprint(err) == x.want && limit.Rounds == x.rounds && limit.Ports == x.width
					if refused != refuses || !refused && err != nil || refused && given && !exact {
						t.Errorf("%d ports, %v: rank %d of %d: %v, want %q", x.ports, x.limits, rank, ranks, err, x.want)
					}
				}
				if refuses && (given && posts > 0 || last >= transport.ControlRounds) {
					t.Errorf("%d ports, %v: %d messages were posted, the last of round %d", x.ports, x.limits, posts, last)
				}
			}
		}
	}
}
