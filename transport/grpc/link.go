package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A stream is an end of a stream of frames.
type stream interface {
	SendMsg(any) error
	RecvMsg(any) error
	Context() context.Context
}

// helloKey is the metadata by which a rank opens a stream: protocol, run, its own rank, and the one it means.
const (
	helloKey  = "volley-hello"
	helloForm = "%d %s %d %d"
)

// connect opens a stream to the peer where there is none.
func (p *peer) connect() {
	if p.link != nil || p.connecting || p.left {
		return
	}
	p.connecting = true
	p.e.running.Go(func() {
		err := p.dial()
		p.e.mu.Lock()
		other := p.accepted && errors.As(err, new(*UnreachedError)) // the peer has connected, and that is enough
		p.e.mu.Unlock()
		if !other {
			p.e.lost(p, err)
		}
	})
}

// dial opens a stream and serves it until it ends.
func (p *peer) dial() error {
	e := p.e
	ctx, cancel := context.WithCancelCause(metadata.AppendToOutgoingContext(e.streams,
		helloKey, fmt.Sprintf(helloForm, Protocol, e.run, e.rank, p.rank)))
	defer cancel(nil)
	conn, err := e.listener.client(e.addresses[p.rank], cancel, true)
	if err != nil {
		return err
	}
	defer conn.Close()
	limit := e.listener.limits.Connect
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("no connection within %v", limit)) })
	s, err := conn.NewStream(ctx, &exchange, "/"+service+"/"+exchange.StreamName, rpc.WaitForReady(true))
	if err != nil {
		err = reason(ctx, err)
		if errors.Is(err, syscall.ECONNREFUSED) {
			e.hearAbort()
		}
		return err
	}
	timer.Stop()
	err = p.serve(s)
	taken, _ := s.Header()
	e.mu.Lock()
	if taken == nil && p.link == stream(s) && !p.again { // an abort goes by another one
		p.again, p.connecting, p.link, p.urgent, p.rests = true, false, nil, nil, nil
	}
	silent := err == io.EOF && !p.left // it closed before it took the stream, or at the same time, and so said no bye
	if silent {
		p.readAll()
	}
	e.mu.Unlock()
	if silent {
		e.hearAbort()
		e.mu.Lock()
		p.leave()
		e.mu.Unlock()
	}
	return err
}

// reason returns why a call failed.
func reason(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrStranger) || errors.As(cause, new(*UnreachedError)) {
		return cause
	}
	text := status.Convert(err).Message()
	switch _, own, wrapped := strings.Cut(text, `desc = "transport: `); {
	case wrapped: // the rest is gRPC's inner parts
		text = strings.TrimSuffix(own, `"`)
	case cause != nil && cause != context.Canceled:
		return cause
	case text == context.Canceled.Error(): // gRPC's word for it at the side that was called
		text = "the connection has ended"
	}
	return errors.New(text)
}

// serve sends and takes frames until the stream ends.
func (p *peer) serve(s stream) error {
	p.e.mu.Lock()
	if p.link == nil {
		p.link = s
		done := make(chan struct{})
		written := make(chan struct{})
		go func() {
			defer close(written)
			p.write(s, done)
		}()
		defer func() {
			close(done)
			<-written
		}()
	}
	p.e.mu.Unlock()
	var wrong error
	take := reader(func(f *frame, data *mem.Reader) error {
		wrong = p.take(f, data)
		return wrong
	})
	for {
		if err := s.RecvMsg(take); err != nil {
			if wrong == nil && err == io.EOF {
				return err
			}
			if wrong == nil {
				wrong = reason(s.Context(), err)
			}
			return wrong
		}
	}
}

func (p *peer) write(s stream, done <-chan struct{}) {
	for {
		p.e.mu.Lock()
		f := p.next()
		p.e.mu.Unlock()
		if f == nil {
			select {
			case <-p.wake:
			case <-done:
				return
			}
			continue
		}
		if s.SendMsg(f) != nil {
			return // who reads hears why
		}
		f.Put(nil)
	}
}

// accept serves a stream that a peer has opened.
func (l *Listener) accept(_ any, s rpc.ServerStream) error {
	p, err := l.admit(s.Context())
	if err != nil {
		l.refused(caller(s.Context()), err)
		return status.Error(codes.PermissionDenied, err.Error())
	}
	if p == nil {
		return nil // to the peer this rank is closed, not lost
	}
	s.SendHeader(nil) // who opened it knows now that it is taken
	ended := make(chan struct{})
	go func() {
		defer p.e.running.Done()
		defer close(ended)
		p.e.lost(p, p.serve(s))
	}()
	select {
	case <-ended:
		return status.Error(codes.Aborted, "the stream has failed at the other side")
	case <-p.e.streams.Done():
		return nil
	}
}

// admit returns the peer that a stream says it is from, which counts as running; after Close it returns nil.
func (l *Listener) admit(ctx context.Context) (*peer, error) {
	select {
	case <-l.joined:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(l.limits.Connect):
		return nil, errors.New("this rank has not heard of the others")
	}
	e := l.endpoint
	md, _ := metadata.FromIncomingContext(ctx)
	var protocol, from, to int
	var run string
	hello := md.Get(helloKey)
	if len(hello) != 1 {
		return nil, errors.New("it does not say who it is")
	}
	if n, err := fmt.Sscanf(hello[0], helloForm, &protocol, &run, &from, &to); n < 4 || err != nil {
		return nil, errors.New("it does not say who it is")
	}
	switch p, err := e.peer(from); {
	case protocol != Protocol:
		return nil, fmt.Errorf("it speaks protocol %d, and rank %d protocol %d: run the same version everywhere", protocol, e.rank, Protocol)
	case run != e.run:
		return nil, errors.New("it is of another run")
	case err != nil:
		return nil, err
	case to != e.rank:
		return nil, fmt.Errorf("it looks for rank %d, and this is rank %d", to, e.rank)
	default:
		e.mu.Lock()
		defer e.mu.Unlock()
		switch {
		case p.accepted:
			return nil, fmt.Errorf("rank %d is connected already", from)
		case e.closed:
			return nil, nil
		}
		p.accepted = true
		e.running.Add(1)
		return p, nil
	}
}
