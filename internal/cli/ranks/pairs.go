package ranks

import (
	"context"
	"encoding/json"
	"fmt"
	"net"

	"volley/engine"
)

// A Pair is how one rank of a launch reaches another.
type Pair struct {
	SourceHost string  `json:"from"` // hosts
	TargetHost string  `json:"to"`
	Source     string  `json:"from_address"` // host:port at which each listens
	Address    string  `json:"to_address"`
	Handshake  float64 `json:"handshake_seconds"`
	Delay      float64 `json:"delay_seconds"`   // half of the least round trip
	Error      string  `json:"error,omitempty"` // why it does not
	Open       string  `json:"open,omitempty"`  // what to open then
}

// reaches is what a rank says of how it reaches others.
type reaches struct {
	Host    string
	Reached []engine.Reach `json:"To"`
}

// Pairs joins the ranks of a launch, and measures how all pairs of them connect.
func (o *Joining) Pairs(ctx context.Context) (pairs []Pair, err error) {
	if err := o.enter(ctx); err != nil {
		return nil, err
	}
	rank := o.Session.LaunchRank
	text, err := json.Marshal(reaches{rank.Start.Name, rank.Probe(ctx, o.Timeout)})
	if err != nil {
		return nil, err
	}
	texts, err := rank.Gather(text)
	if err != nil {
		return nil, err
	}
	addresses := rank.Listener.Addresses()
	answers := make([]reaches, len(addresses))
	for r, text := range texts {
		if err := json.Unmarshal(text, &answers[r]); err != nil || len(answers[r].Reached) != len(answers) {
			return nil, fmt.Errorf("rank %d does not say how it reaches others", r)
		}
	}
	for source, x := range answers {
		for target, y := range x.Reached {
			if source == target {
				continue
			}
			x := Pair{x.Host, answers[target].Host, addresses[source], addresses[target], y.Handshake.Seconds(), y.Delay.Seconds(), y.Error, ""}
			if x.Error != "" {
				x.Open = toOpen(addresses[source], addresses[target], rank.Ports())
			}
			pairs = append(pairs, x)
		}
	}
	return pairs, nil
}

// toOpen says what to open between two addresses.
func toOpen(sourceAddress, targetAddress string, ports engine.Ports) string {
	source, _, _ := net.SplitHostPort(sourceAddress)
	host, port, _ := net.SplitHostPort(targetAddress)
	if ports != (engine.Ports{}) {
		return fmt.Sprintf("open TCP ports %v of %s for %s", ports, host, source)
	}
	return fmt.Sprintf("open TCP port %s of %s for %s, or with --port %v these", port, host, source, engine.UsualPorts)
}
