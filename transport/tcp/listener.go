package tcp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"volley/transport/waits"
)

// Protocol is the version of the frames and of what ranks say when they meet.
const Protocol = 6

const (
	mostHandshakes = 128 // under way
	acceptAgain    = 10 * time.Millisecond
	connectLimit   = time.Minute // to reach another rank: many ranks of a busy machine take long
)

// Patience is how long a rank waits for others. Zero is what is usual.
type Patience struct {
	Handshake time.Duration // 20 s: on a busy machine a handshake takes seconds
	Turn      time.Duration // 2 s, for the lower of two ranks to connect them, before the higher one does
	Dial      time.Duration // 6 s, until a rank is given up whose name is not found, or to which there is no route
	Asks      int           // 3 packets ask the kernel of a rank to connect: it answers, however busy the machine is
	Answer    time.Duration // 5 s, for rank 0 to say who is missing when the time of a gathering is over
	Abort     time.Duration // 1 s, where a peer is found closed, for the abort that it may have heard first
	Refused   time.Duration // 5 s, from a connection that is refused until the log tells of it and of those that follow
	Close     time.Duration // 3 s, at Close, for peers to say that they have read everything
}

// filled returns the limits with what is usual where they are zero.
func (l Patience) filled() Patience {
	return Patience{
		Handshake: cmp.Or(l.Handshake, 20*time.Second),
		Turn:      cmp.Or(l.Turn, 2*time.Second),
		Dial:      cmp.Or(l.Dial, 6*time.Second),
		Asks:      cmp.Or(l.Asks, 3),
		Answer:    cmp.Or(l.Answer, 5*time.Second),
		Abort:     cmp.Or(l.Abort, time.Second),
		Refused:   cmp.Or(l.Refused, 5*time.Second),
		Close:     cmp.Or(l.Close, 3*time.Second),
	}
}

// A Listener is where the peers of a rank connect.
type Listener struct {
	Ports string // at which ranks listen in all runs; "": any

	log      *slog.Logger
	limits   Patience
	socket   net.Listener
	security *tls.Config // nil: none
	serving  sync.WaitGroup
	stopped  context.Context // ends with all connections
	stop     context.CancelFunc
	joined   chan struct{} // closed when the endpoint is there
	endpoint *Endpoint

	meets context.Context // ends with first, which is nil before the first gathering
	leave func(error)
	first *conn // to rank 0

	mu         sync.Mutex // guards what follows
	handshakes []net.Conn // under way, oldest first
	refused    refusals
	gathered   map[string]*gathering
	met        []*caller     // of the first one
	changed    chan struct{} // closed when they change
}

// Serve accepts connections of a run until Close. Security says whom, for both sides of a connection; nil is anybody,
// unencrypted. The log gets who is refused; for nil nothing is logged.
func Serve(socket net.Listener, security *tls.Config, limits Patience, log *slog.Logger) *Listener {
	l := &Listener{
		log: cmp.Or(log, slog.New(slog.DiscardHandler)), limits: limits.filled(), socket: socket,
		joined: make(chan struct{}), gathered: map[string]*gathering{}, changed: make(chan struct{}),
	}
	if security != nil {
		l.security = security.Clone()
		l.security.DynamicRecordSizingDisabled = true // all that is sent is long, or ends a call of the system
	}
	l.meets, l.leave = context.WithCancelCause(context.Background())
	l.stopped, l.stop = context.WithCancel(context.Background())
	l.serving.Go(l.accept)
	return l
}

// accept serves each connection.
func (l *Listener) accept() {
	for {
		raw, err := l.socket.Accept()
		switch {
		case err == nil:
			l.begin(raw)
			l.serving.Go(func() { l.serve(raw) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // too many files are open
			time.Sleep(acceptAgain)
		}
	}
}

// begin notes the handshake of a connection. Of too many under way the oldest ends.
func (l *Listener) begin(raw net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handshakes = append(l.handshakes, raw); len(l.handshakes) > mostHandshakes {
		l.handshakes[0].Close()
		l.handshakes = slices.Delete(l.handshakes, 0, 1)
	}
}

// serve does what a connection is made for.
func (l *Listener) serve(raw net.Conn) {
	defer raw.Close()
	defer context.AfterFunc(l.stopped, func() { raw.Close() })()
	c, call, err := l.welcome(raw)
	l.mu.Lock()
	l.handshakes = slices.DeleteFunc(l.handshakes, func(pending net.Conn) bool { return pending == raw })
	l.mu.Unlock()
	if err == nil { // from here on the connection does not end for others: the caller would take it for the end of this rank
		err = errors.Join(c.send(frame{kind: readyFrame}), raw.SetDeadline(time.Time{}))
	}
	if err == nil {
		switch call.kind {
		case exchangeFrame:
			err = l.admit(c, call)
		case meetFrame:
			err = l.meet(c)
		default:
			err = errors.New("it does not say who it is")
		}
	}
	if err != nil && l.meets.Err() == nil {
		l.refuse(raw.RemoteAddr().String(), plain(err).Error())
	}
}

// welcome shakes hands, and reads what a connection is for.
func (l *Listener) welcome(raw net.Conn) (c *conn, call frame, err error) {
	raw.SetDeadline(time.Now().Add(l.limits.Handshake))
	if c, err = l.secure(raw, tls.Server); err == nil {
		call, err = c.next()
	}
	if err == nil {
		call.text, err = c.rest(call)
	}
	if err != nil && l.security == nil { // who encrypts hears that this rank does not
		c.send(frame{kind: refusedFrame})
	}
	return c, call, err
}

// Join makes this process a rank of a run, by its name. It is called once; close the endpoint before the listener.
func (l *Listener) Join(rank int, addresses []string, run string) *Endpoint {
	e := &Endpoint{listener: l, rank: rank, addresses: slices.Clone(addresses), run: run, aborted: make(chan struct{}), answers: map[uint64]chan int{}}
	e.host = e.findHost()
	e.waits = waits.New(e.aborted, func() error { return e.abort }, e.start)
	e.open, e.end = context.WithCancel(context.Background())
	e.peers = make([]*peer, len(addresses))
	for r := range e.peers {
		if r != rank {
			e.peers[r] = newPeer(e, r)
		}
	}
	l.endpoint = e
	close(l.joined)
	return e
}

// Close ends all connections, once those who call have their answers.
func (l *Listener) Close() error {
	l.leave(nil)
	err := l.socket.Close()
	l.mu.Lock()
	for _, raw := range l.handshakes {
		raw.Close()
	}
	l.mu.Unlock()
	defer time.AfterFunc(l.limits.Close, l.stop).Stop()
	l.serving.Wait()
	l.stop()
	l.tellRefused()
	return err
}

// refusals are connections that were refused, of which the log has not told. Who scans ports makes hundreds.
type refusals struct {
	count           int
	address, reason string // of the first
}

// refuse has the log tell of a connection, in a line with those that follow soon.
func (l *Listener) refuse(address, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused.count == 0 {
		l.refused = refusals{address: address, reason: reason}
		time.AfterFunc(l.limits.Refused, l.tellRefused)
	}
	l.refused.count++
}

func (l *Listener) tellRefused() {
	l.mu.Lock()
	r := l.refused
	l.refused = refusals{}
	l.mu.Unlock()
	if r.count > 0 {
		l.log.Warn("refused connections", "count", r.count, "first", r.address, "because", r.reason)
	}
}
