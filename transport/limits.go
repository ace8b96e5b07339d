package transport

import (
	"fmt"

	"volley/internal/printable"
)

// Limits say for which tags a transport has room: those of either block. A plan keeps to one of them. The zero value has
// no limits.
type Limits [2]Block

// A Block is the tags of so many rounds, [ControlRounds] among them, of so many ports each.
type Block struct{ Rounds, Ports int }

// A Limiter is a Transport that has room for some tags only.
type Limiter interface {
	// Limits says, alike at all ranks, for which.
	Limits() Limits
}

// LimitsOf returns the limits of a transport: none unless it is a [Limiter]. A rank alone sends nothing, and has none. Of
// nil, a transport that nobody knows yet, there are none.
func LimitsOf(t Transport) Limits {
	if l, ok := t.(Limiter); ok && t.Size() > 1 {
		return l.Limits()
	}
	return Limits{}
}

// Carry returns a *[LimitsError] unless there is room for a plan of so many rounds and ports, after [ControlRounds].
func (l Limits) Carry(rounds, ports int) error {
	if l == (Limits{}) || rounds == 0 {
		return nil
	}
	e := &LimitsError{Rounds: rounds, Ports: ports}
	for _, b := range l {
		e.MostPorts = max(e.MostPorts, b.ports())
		if ports <= b.ports() {
			e.MostRounds = max(e.MostRounds, b.Rounds-ControlRounds)
		}
	}
	if rounds <= e.MostRounds {
		return nil
	}
	return e
}

// ports returns how many ports a plan may have, of one round or more.
func (b Block) ports() int {
	if b.Rounds <= ControlRounds {
		return 0
	}
	return b.Ports
}

// A LimitsError says that a transport has no room for a plan.
type LimitsError struct {
	Rounds, Ports int // that the plan takes
	MostRounds    int // with as many ports; 0: it has more than MostPorts
	MostPorts     int
}

func (e *LimitsError) Error() string {
	if e.MostRounds == 0 {
		return fmt.Sprintf("it needs %s a round, and the messages of the transport have %d at most: take a plan with fewer ports", printable.Count(e.Ports, "port"), e.MostPorts)
	}
	return fmt.Sprintf("it needs %s, and the messages of the transport have %d at most with %s: take a plan with fewer rounds",
		printable.Count(e.Rounds, "round"), e.MostRounds, printable.Count(e.Ports, "port"))
}
