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
	From      string  `json:"from"` // hosts
	To        string  `json:"to"`
	Source    string  `json:"from_address"` // host:port at which each listens
	Address   string  `json:"to_address"`
	Handshake float64 `json:"handshake_seconds"`
	Delay     float64 `json:"delay_seconds"` // half of the least round trip
	Rate      int64   `json:"bytes_per_second,omitempty"`
	Error     string  `json:"error,omitempty"` // why it does not
	Open      string  `json:"open,omitempty"`  // what to open then
}

// reaches is what a process says of how it reaches others.
type reaches struct {
	Host string
	To   []engine.Reach
}

// probe measures all pairs of processes, their rates if wanted. The error is a *session.CommonError where some cannot
// connect.
func (o *Joining) probe(ctx context.Context) ([]Pair, error) {
	p := o.Session.Party
	text, err := json.Marshal(reaches{p.Host, p.Here.Probe(ctx, o.Timeout, o.Rates)})
	if err != nil {
		return nil, err
	}
	texts, err := p.Gather(ctx, text, longer(o.Timeout, engine.ProbeTime(p.Size())))
	if err != nil {
		return nil, err
	}
	said := make([]reaches, p.Size())
	for r, text := range texts {
		if err := json.Unmarshal(text, &said[r]); err != nil || len(said[r].To) != p.Size() {
			return nil, fmt.Errorf("rank %d does not say how it reaches others", r)
		}
	}
	name := func(rank int) string {
		same := func(x reaches) bool { return x.Host == said[rank].Host }
		if i := slices.IndexFunc(said, same); i < rank || slices.ContainsFunc(said[rank+1:], same) {
			return fmt.Sprintf("%s (rank %d)", said[rank].Host, rank)
		}
		return said[rank].Host
	}
	at := p.Here.Addresses()
	var pairs []Pair
	var failed []string
	for from, x := range said {
		for to, y := range x.To {
			if from == to {
				continue
			}
			x := Pair{name(from), name(to), at[from], at[to], y.Handshake.Seconds(), y.Delay.Seconds(), y.Rate, y.Error, ""}
			if x.Error != "" {
				x.Open = toOpen(at[from], at[to], p.Here.Ports())
				failed = append(failed, fmt.Sprintf("%s cannot reach %s: %s; %s", x.From, x.To, x.Error, x.Open))
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
func longer(timeout, by time.Duration) time.Duration {
	if timeout == 0 {
		return 0
	}
	return timeout + by
}

// toOpen says what to open between two addresses.
func toOpen(from, to string, ports engine.Ports) string {
	source, _, _ := net.SplitHostPort(from)
	host, port, _ := net.SplitHostPort(to)
	if ports != (engine.Ports{}) {
		return fmt.Sprintf("open TCP ports %v of %s for %s", ports, host, source)
	}
	return fmt.Sprintf("open TCP port %s of %s for %s, or with --port %v these", port, host, source, engine.UsualPorts)
}
