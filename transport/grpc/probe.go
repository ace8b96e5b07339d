package grpc

import (
	"context"
	"io"
	"time"

	rpc "google.golang.org/grpc"
)

// A Probe is what connections from one rank to another are like.
type Probe struct {
	Handshake time.Duration // of a new connection, with that of TCP
	Delay     time.Duration // half of the least round trip
	Rate      int64         // bytes a second; 0: not measured
}

var probing = rpc.StreamDesc{StreamName: "Probe", ServerStreams: true, ClientStreams: true}

const (
	probeTime  = 100 * time.Millisecond // in which so much is sent that the rate is known
	leastProbe = 64 << 10
	mostProbe  = 64 << 20
	roundTrips = 10
)

// Probe measures a connection to another rank's listener: round trips, then, for the rate, ever more bytes up to a tenth
// of a second.
func (l *Listener) Probe(ctx context.Context, address string, rate bool) (p Probe, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := l.client(address, cancel, true)
	if err != nil {
		return p, err
	}
	defer conn.Close()
	begun := time.Now()
	s, err := conn.NewStream(ctx, &probing, "/"+service+"/"+probing.StreamName)
	if err != nil {
		return p, reason(ctx, err)
	}
	// send returns how long it takes until the other side has so many bytes, and says so.
	data := make([]byte, frameBytes)
	send := func(n int) (time.Duration, error) {
		start := time.Now()
		for ; n > 0; n -= len(data) {
			part := data[:min(n, len(data))]
			if err := s.SendMsg(&part); err != nil {
				break // who receives hears why
			}
		}
		end := []byte{}
		s.SendMsg(&end)
		err := s.RecvMsg(&end)
		return time.Since(start), err
	}
	for i := range roundTrips {
		trip, err := send(0)
		if err != nil {
			return p, reason(ctx, err)
		}
		if i == 0 {
			p.Handshake, p.Delay = time.Since(begun)-trip, trip
		}
		p.Delay = min(p.Delay, trip/2)
	}
	for n, took := leastProbe, time.Duration(0); rate && took < probeTime && n <= mostProbe; n *= 4 {
		if took, err = send(n); err != nil {
			return p, reason(ctx, err)
		}
		p.Rate = int64(float64(n) / max(took-2*p.Delay, 1).Seconds())
	}
	return p, nil
}

// probed answers a probe: every empty message comes back.
func (l *Listener) probed(_ any, s rpc.ServerStream) error {
	for {
		var data []byte
		switch err := s.RecvMsg(&data); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(data) > 0:
		default:
			if err := s.SendMsg(&data); err != nil {
				return err
			}
		}
	}
}
