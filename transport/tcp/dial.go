package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"volley/transport"
)

const (
	firstPause = 50 * time.Millisecond // between tries to connect; each is twice as long
	lastPause  = time.Second
)

// An UnreachedError says that TCP does not connect to a rank that listens, or has listened.
type UnreachedError struct {
	Source, Target string // addresses of ranks
	Ports          string // see [Listener]
	Err            error
}

func (e *UnreachedError) Error() string { return e.Err.Error() }

func (e *UnreachedError) Unwrap() error { return e.Err }

// Refused reports whether the other machine has answered that nobody listens: the rank has ended, or a firewall says so.
func (e *UnreachedError) Refused() bool { return errors.Is(e.Err, syscall.ECONNREFUSED) }

// advice says which port to open, or nothing where it is no firewall.
func (e *UnreachedError) advice() string {
	source, _, _ := net.SplitHostPort(e.Source)
	host, port, err := net.SplitHostPort(e.Target)
	if err != nil || errors.As(e.Err, new(*net.DNSError)) {
		return ""
	}
	text := fmt.Sprintf("; if it runs, open TCP port %s of %s for %s", port, host, source)
	if e.Ports != "" {
		text += fmt.Sprintf(", and %s for other runs", e.Ports)
	}
	return text
}

// ErrStranger is wrapped by the error of a connection on which one side may not take part: by that of a tls.Config's
// VerifyConnection, and where the other side has refused this one.
var ErrStranger = errors.New("refused")

// asStranger returns the error of a handshake. It wraps ErrStranger where a side is a stranger to the other, and a second
// try would be in vain.
func asStranger(err error) error {
	alert := new(net.OpError)
	switch {
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Errorf("%w by the other side: %w", ErrStranger, plain(err))
	case errors.As(err, new(tls.RecordHeaderError)):
		return fmt.Errorf("%w: it does not encrypt", ErrStranger)
	}
	return err
}

// dial calls a rank, again and again until ctx ends. It gives up where one side is a stranger to the other. A rank that
// has listened is given up, too, once its kernel refuses the connection or does not answer, or once no try has connected
// by the limit. The kernel counts how often it asks the other one: a process that runs late would count the time in which
// it did not run.
func (l *Listener) dial(ctx context.Context, address string, call frame, listened bool) (*conn, error) {
	dialer := net.Dialer{}
	if listened {
		dialer.Control = func(_, _ string, c syscall.RawConn) error { return endUnanswered(c, l.limits.Asks) }
	}
	connected, end := false, time.Now().Add(l.limits.Dial)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		try, cancel := context.WithTimeout(ctx, l.limits.Handshake)
		var c *conn
		raw, err := dialer.DialContext(try, "tcp", address)
		switch {
		case err == nil:
			connected = true
			c, err = l.call(try, raw, call)
		case listened && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ETIMEDOUT) || !connected && time.Now().After(end)):
			cancel()
			return nil, &UnreachedError{Target: address, Ports: l.Ports, Err: err}
		}
		cancel()
		if err == nil || errors.Is(err, ErrStranger) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), plain(err))
		case <-time.After(pause):
		}
	}
}

// call says what a connection is made for, once both sides have shaken hands.
func (l *Listener) call(ctx context.Context, raw net.Conn, call frame) (*conn, error) {
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	c, err := l.secure(raw, tls.Client)
	if err == nil {
		err = c.send(call)
	}
	if err == nil { // in TLS 1.3 the caller is through first, and hears here whether the other side is
		_, err = c.text(readyFrame)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		raw.Close()
		return nil, asStranger(err)
	}
	return c, nil
}

// connect calls the peer where there is no connection with it.
func (p *peer) connect() {
	if p.link == nil && !p.connecting && !p.closed {
		p.connecting = true
		p.e.running.Go(p.dial)
	}
}

// dial connects the peer, and serves the connection until it ends.
func (p *peer) dial() {
	e := p.e
	c, err := p.call()
	if c != nil {
		defer c.Close()
	}
	e.mu.Lock()
	p.connecting = false
	accepted := p.accepted
	if err == nil {
		p.attach(c)
	}
	e.mu.Unlock()
	switch {
	case err == nil:
		err = p.serve(c)
	case accepted && errors.As(err, new(*UnreachedError)): // the peer has connected, and that is enough
		return
	case errors.Is(err, transport.ErrClosed):
		e.hearAbort()
		e.mu.Lock()
		p.leave()
		e.mu.Unlock()
	case errors.Is(err, syscall.ECONNREFUSED):
		e.hearAbort()
	}
	e.lost(p, err)
}

// call returns a connection that the peer has taken.
func (p *peer) call() (*conn, error) {
	e := p.e
	ctx, cancel := context.WithTimeoutCause(e.open, connectLimit, fmt.Errorf("no connection within %v", connectLimit))
	defer cancel()
	hello := frame{kind: exchangeFrame, a: Protocol, b: uint32(e.rank), c: uint32(p.rank), text: []byte(e.run)}
	c, err := e.listener.dial(ctx, e.addresses[p.rank], hello, true)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(e.open, func() { c.Close() })
	f, err := c.next() // the peer may join late
	var text []byte
	if err == nil {
		text, err = c.rest(f)
	}
	switch {
	case err != nil:
		return c, plain(err)
	case f.kind == takenFrame:
		return c, nil
	case f.kind == byeFrame:
		return c, transport.ErrClosed
	case f.kind == refusedFrame:
		return c, errors.New(string(text))
	}
	return c, errProtocol("a frame of kind %d", f.kind)
}

// attach has what is for the peer sent on a connection, and reports whether it is the first. The first frame tells a
// caller that it is admitted.
func (p *peer) attach(c *conn, first ...frame) bool {
	if p.link != nil {
		return false
	}
	p.link = c
	p.urgent = append(first, p.urgent...)
	p.writing = true
	p.e.running.Go(func() { p.write(c) })
	return true
}

// serve takes frames until the connection ends.
func (p *peer) serve(c *conn) error {
	defer close(c.ended)
	for {
		f, err := c.next()
		if err == nil {
			err = p.take(c, f)
		}
		if err != nil {
			return plain(err)
		}
	}
}

// write sends frames until the connection ends: who reads hears why.
func (p *peer) write(c *conn) {
	defer func() {
		p.e.mu.Lock()
		defer p.e.mu.Unlock()
		p.writing = false
		p.urgent = append(c.batch.frames, p.urgent...)
		if p.closed {
			p.fail()
		}
	}()
	for {
		p.e.mu.Lock()
		if p.closed {
			p.fail()
		}
		p.collect(&c.batch)
		p.e.mu.Unlock()
		if len(c.batch.frames) > 0 {
			if c.write(&c.batch) != nil {
				return
			}
			continue
		}
		select {
		case <-p.wake:
		case <-c.ended:
			return
		}
	}
}

// admit serves a peer that has called, once this rank has joined.
func (l *Listener) admit(c *conn, call frame) error {
	select {
	case <-l.joined:
	case <-l.meets.Done():
	case <-time.After(connectLimit):
	}
	var p *peer
	err := errors.New("this rank has not heard of the others")
	select {
	case <-l.joined:
		p, err = l.endpoint.accept(c, call)
	default:
	}
	switch {
	case errors.Is(err, transport.ErrClosed): // to the peer this rank is closed, not lost
		c.send(frame{kind: byeFrame})
		return nil
	case err != nil:
		c.send(frame{kind: refusedFrame, text: []byte(err.Error())})
		return err
	}
	defer p.e.running.Done()
	defer context.AfterFunc(p.e.open, func() { c.Close() })()
	p.e.lost(p, p.serve(c))
	return nil
}

// accept returns the peer that a call says it is from, which counts as running.
func (e *Endpoint) accept(c *conn, call frame) (*peer, error) {
	p, err := e.peer(int(call.b))
	switch {
	case call.a != Protocol:
		return nil, fmt.Errorf("it speaks protocol %d, and rank %d protocol %d: run the same version everywhere", call.a, e.rank, Protocol)
	case string(call.text) != e.run:
		return nil, errors.New("it is of another run")
	case err != nil:
		return nil, err
	case int(call.c) != e.rank:
		return nil, fmt.Errorf("it looks for rank %d, and this is rank %d", call.c, e.rank)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case p.accepted:
		return nil, fmt.Errorf("rank %d is connected already", p.rank)
	case e.closed:
		return nil, transport.ErrClosed
	}
	p.accepted = true
	e.running.Add(1)
	if taken := (frame{kind: takenFrame}); !p.attach(c, taken) {
		c.send(taken) // this does not wait: nothing has been sent yet
	}
	return p, nil
}
