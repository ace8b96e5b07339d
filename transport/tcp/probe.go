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
	Rate      int64         // bytes a second; 0: not measured
}

const (
	probeTime  = 100 * time.Millisecond // in which so much is sent that the rate is known
	leastProbe = 64 << 10
	mostProbe  = 64 << 20
	roundTrips = 10
)

// Probe measures a connection to another rank's listener: round trips, then, for the rate, ever more bytes up to a tenth
// of a second.
func (l *Listener) Probe(ctx context.Context, address string, rate bool) (p Probe, err error) {
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
		trip, err := c.measure(0)
		if err != nil {
			return p, err
		}
		if p.Delay == 0 || trip/2 < p.Delay {
			p.Delay = trip / 2
		}
	}
	for size, took := leastProbe, time.Duration(0); rate && took < probeTime && size <= mostProbe; size *= 4 {
		if took, err = c.measure(size); err != nil {
			return p, err
		}
		p.Rate = int64(float64(size) / max(took-2*p.Delay, 1).Seconds())
	}
	return p, nil
}

var zeros [frameBytes]byte

// measure returns how long it takes until the other side has so many bytes, and says so.
func (c *conn) measure(size int) (time.Duration, error) {
	start := time.Now()
	for ; size > 0; size -= frameBytes {
		if err := c.send(frame{kind: textFrame, text: zeros[:min(size, frameBytes)]}); err != nil {
			return 0, err
		}
	}
	if err := c.send(frame{kind: textFrame}); err != nil {
		return 0, err
	}
	_, err := c.text(textFrame)
	return time.Since(start), err
}

// probed answers a probe: every empty message comes back.
func (l *Listener) probed(c *conn) error {
	for {
		text, err := c.text(textFrame)
		if err == nil && len(text) == 0 {
			err = c.send(frame{kind: textFrame})
		}
		if err != nil {
			return nil // the caller has ended
		}
	}
}
