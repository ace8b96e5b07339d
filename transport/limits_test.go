package transport_test

import (
	"errors"
	"math"
	"testing"

	"volley/internal/delay"
	"volley/internal/faulty"
	"volley/transport"
	"volley/transport/local"
)

// A few is a transport with few tags.
type few struct{ transport.Transport }

var fewTags = transport.Limits{{Rounds: 30, Ports: 4}, {Rounds: 20, Ports: 9}}

func (few) Limits() transport.Limits { return fewTags }

// TestLimitsOf has the transports around another one hand on its limits.
func TestLimitsOf(t *testing.T) {
	end := few{local.New(3)[0]}
	for name, got := range map[string]transport.Limits{
		"itself": transport.LimitsOf(end),
		"subset": transport.LimitsOf(transport.Subset(end, []int{0, 2})),
		"faulty": transport.LimitsOf(faulty.New(end)),
		"late":   transport.LimitsOf(delay.New(t.Context(), end, nil)),
	} {
		if got != fewTags {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, free := range map[string]transport.Transport{
		"nil": nil, "local": local.New(3)[0], "a rank alone": few{local.New(1)[0]}, "a rank alone in its subset": transport.Subset(end, []int{0}),
	} {
		if got := transport.LimitsOf(free); got != (transport.Limits{}) || got.Carry(math.MaxInt, math.MaxInt) != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCarry has plans of as many rounds and ports as there are tags for, and of more.
func TestCarry(t *testing.T) {
	for _, x := range []struct {
		rounds, ports int
		want          string
	}{
		{14, 4, ""}, {4, 9, ""}, {4, 5, ""}, {0, 99, ""},
		{15, 1, "it needs 15 rounds, and the messages of the transport have 14 at most with 1 port: take a plan with fewer rounds"},
		{5, 5, "it needs 5 rounds, and the messages of the transport have 4 at most with 5 ports: take a plan with fewer rounds"},
		{1, 10, "it needs 10 ports a round, and the messages of the transport have 9 at most: take a plan with fewer ports"},
	} {
		err := fewTags.Carry(x.rounds, x.ports)
		if err == nil && x.want != "" || err != nil && (err.Error() != x.want || !errors.As(err, new(*transport.LimitsError))) {
			t.Errorf("%d rounds of %d ports: %v, want %q", x.rounds, x.ports, err, x.want)
		}
	}
}
