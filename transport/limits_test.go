package transport_test

import (
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
		want          *transport.LimitsError
	}{
		{14, 4, nil}, {4, 9, nil}, {4, 5, nil}, {0, 99, nil},
		{15, 4, &transport.LimitsError{Rounds: 15, Ports: 4, MostRounds: 14, MostPorts: 9}},
		{5, 5, &transport.LimitsError{Rounds: 5, Ports: 5, MostRounds: 4, MostPorts: 9}},
		{1, 10, &transport.LimitsError{Rounds: 1, Ports: 10, MostPorts: 9}},
	} {
		err := fewTags.Carry(x.rounds, x.ports)
		if x.want == nil && err == nil {
			continue
		}
		if got, _ := err.(*transport.LimitsError); x.want == nil || got == nil || *got != *x.want {
			t.Errorf("%d rounds of %d ports: %+v, want %+v", x.rounds, x.ports, err, x.want)
		}
	}
}
