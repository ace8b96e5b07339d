package ranks

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"volley/engine"
	"volley/internal/cli/session"
)

// A Pair is how one process reaches another.
type Pair struct {
	SourceHost string  `json:"from"` // hosts
	TargetHost string  `json:"to"`
	Source     string  `json:"from_address"` // host:port at which each listens
	Address    string  `json:"to_address"`
	Handshake  float64 `json:"handshake_seconds"`
	Delay      float64 `json:"delay_seconds"` // half of the least round trip
	Rate       int64   `json:"bytes_per_second,omitempty"`
	Error      string  `json:"error,omitempty"` // why it does not
	Open       string  `json:"open,omitempty"`  // what to open then
}

// reaches is what a process says of how it reaches others.
type reaches struct {
	Host    string
	Reached []engine.Reach `json:"To"`
}

// probe measures all pairs of processes, their rates if wanted. The error is a *session.CommonError where some cannot
// connect.
func (o *Joining) probe(ctx context.Context) ([]Pair, error) {
	p := o.Session.Party
	text, err := json.Marshal(reaches{p.Host, p.Listener.Probe(ctx, o.Timeout, o.Rates)})
	if err != nil {
		return nil, err
	}
	texts, err := p.Gather(ctx, text, longer(o.Timeout, engine.ProbeTime(p.Size())))
	if err != nil {
		return nil, err
	}
	answers := make([]reaches, p.Size())
	for r, text := range texts {
		if err := json.Unmarshal(text, &answers[r]); err != nil || len(answers[r].Reached) != p.Size() {
			return nil, fmt.Errorf("rank %d does not say how it reaches others", r)
		}
	}
	name := func(rank int) string {
		sameHost := func(x reaches) bool { return x.Host == answers[rank].Host }
		if i := slices.IndexFunc(answers, sameHost); i < rank || slices.ContainsFunc(answers[rank+1:], sameHost) {
			return fmt.Sprintf("%s (rank %d)", answers[rank].Host, rank)
		}
		return answers[rank].Host
	}
	addresses := p.Listener.Addresses()
	var pairs []Pair
	var failed []string
	for source, x := range answers {
		for target, y := range x.Reached {
			if source == target {
				continue
			}
			x := Pair{name(source), name(target), addresses[source], addresses[target], y.Handshake.Seconds(), y.Delay.Seconds(), y.Rate, y.Error, ""}
			if x.Error != "" {
				x.Open = toOpen(addresses[source], addresses[target], p.Listener.Ports())
				failed = append(failed, fmt.Sprintf("%s cannot reach %s: %s; %s", x.SourceHost, x.TargetHost, x.Error, x.Open))
			}
			pairs = append(pairs, x)
		}
	}
	if failed == nil {
		return pairs, nil
	}
	return pairs, &session.CommonError{Text: fmt.Sprintf("%d of %d connections fail: %s", len(failed), len(pairs), strings.Join(failed, ". "))}
}

// longer returns a timeout that is longer by a time. One of 0 stays none.
func longer(timeout, extra time.Duration) time.Duration {
	if timeout == 0 {
		return 0
	}
	return timeout + extra
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
