package tcp

import (
	"cmp"
	"context"
	"time"
)

// A Probe is what connections from one rank to another are like.
type Probe struct {
	Handshake time.Duration // of a new connection, with that of TCP
	Delay     time.Duration // half of the least round trip
}

const roundTrips = 10

// Probe measures a connection to another rank's listener.
func (l *Listener) Probe(ctx context.Context, address string) (p Probe, err error) {
	begun := time.Now()
	c, err := l.dial(ctx, address, frame{kind: probeFrame}, true)
	if err != nil {
		return p, err
	}
	p.Handshake = time.Since(begun)
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	defer func() {
		if err != nil {
			err = cmp.Or(context.Cause(ctx), plain(err))
		}
	}()
	for range roundTrips {
		start := time.Now()
		if err = c.send(frame{kind: textFrame}); err != nil {
			return p, err
		}
		if _, err = c.text(textFrame); err != nil {
			return p, err
		}
		if delay := time.Since(start) / 2; p.Delay == 0 || delay < p.Delay {
			p.Delay = delay
		}
	}
	return p, nil
}

// probed answers a probe: every message comes back empty.
func (l *Listener) probed(c *conn) error {
	for {
		_, err := c.text(textFrame)
		if err == nil {
			err = c.send(frame{kind: textFrame})
		}
		if err != nil {
			return nil // the caller has ended
		}
	}
}
