package grpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"

	"volley/transport/waits"
)

// Protocol is the version of the frames and of what ranks say when they meet.
const Protocol = 4

const (
	service = "volley"

	mostHandshakes = 128              // under way
	aliveAfter     = 10 * time.Second // gRPC takes no less
	aliveWithin    = 20 * time.Second

	// A stream and a connection may have so much under way.
	streamWindow = 16 << 20
	connWindow   = 32 << 20

	// All connections of a rank read into so many bytes together, unless that is less than so many each.
	allBuffers  = 16 << 20
	leastBuffer = 32 << 10
)

var exchange = rpc.StreamDesc{StreamName: "Exchange", ServerStreams: true, ClientStreams: true}

// Limits are how long a rank waits for others. Zero is what is usual.
type Limits struct {
	Handshake time.Duration // 20 s: on a busy machine a handshake takes seconds
	Turn      time.Duration // 2 s, for the lower of two ranks to connect them, before the higher one does
	Dial      time.Duration // 6 s, until a rank is given up whose name is not found, or to which there is no route
	Asks      int           // 3 packets ask the kernel of a rank to connect: it answers, however busy the machine is
	Connect   time.Duration // a minute, to reach another rank: many ranks of a busy machine take long
	Answer    time.Duration // 5 s, for rank 0 to say who is missing when the time of a gathering is over
	Abort     time.Duration // 1 s, where a peer is found closed, for the abort that it may have heard first
	Refused   time.Duration // 5 s, from a connection that is refused until the log tells of it and of those that follow
	Close     time.Duration // 3 s, at Close, for peers to say that they have read everything
}

// filled returns the limits with what is usual where they are zero.
func (l Limits) filled() Limits {
	return Limits{
		Handshake: cmp.Or(l.Handshake, 20*time.Second),
		Turn:      cmp.Or(l.Turn, 2*time.Second),
		Dial:      cmp.Or(l.Dial, 6*time.Second),
		Asks:      cmp.Or(l.Asks, 3),
		Connect:   cmp.Or(l.Connect, time.Minute),
		Answer:    cmp.Or(l.Answer, 5*time.Second),
		Abort:     cmp.Or(l.Abort, time.Second),
		Refused:   cmp.Or(l.Refused, 5*time.Second),
		Close:     cmp.Or(l.Close, 3*time.Second),
	}
}

// A Listener is where the peers of a rank connect.
type Listener struct {
	log      *slog.Logger
	limits   Limits
	security credentials.TransportCredentials
	buffer   int // bytes, each way of a connection
	server   *rpc.Server
	served   sync.WaitGroup
	joined   chan struct{} // closed when the endpoint is there
	endpoint *Endpoint

	meets  context.Context // ends the stream, which is nil before the first gathering
	leave  func(error)
	stream rpc.ClientStream // to rank 0

	mu         sync.Mutex // guards what follows
	handshakes []net.Conn // under way, oldest first
	refusals   refusals
	gathered   map[string]*gathering
	begun      chan struct{}     // closed when there is one more
	met        []context.Context // of the first one: each ends with its rank
}

// Serve accepts connections of a run of so many ranks until Close. Security says whom; nil is anybody, unencrypted.
// The log gets who is refused; for nil nothing is logged.
func Serve(at net.Listener, size int, security *tls.Config, limits Limits, log *slog.Logger) *Listener {
	l := &Listener{log: cmp.Or(log, slog.New(slog.DiscardHandler)), limits: limits.filled(), buffer: max(leastBuffer, min(frameBytes, allBuffers/size)), joined: make(chan struct{}), gathered: map[string]*gathering{}, begun: make(chan struct{}), security: insecure.NewCredentials()}
	if security != nil {
		l.security = credentials.NewTLS(security)
	}
	l.meets, l.leave = context.WithCancelCause(context.Background())
	stream, probe, meet := exchange, probing, meeting
	stream.Handler, probe.Handler, meet.Handler = l.accept, l.probed, l.meet
	l.server = rpc.NewServer(
		rpc.Creds(guard{l.security, l, nil}), rpc.ForceServerCodecV2(codec{}), rpc.ConnectionTimeout(l.limits.Handshake),
		rpc.MaxRecvMsgSize(headerBytes+frameBytes), rpc.MaxSendMsgSize(math.MaxInt32), rpc.MaxConcurrentStreams(4), rpc.MaxHeaderListSize(4<<10),
		rpc.InitialWindowSize(streamWindow), rpc.InitialConnWindowSize(connWindow),
		rpc.ReadBufferSize(l.buffer), rpc.WriteBufferSize(l.buffer), experimental.BufferPool(pool),
		rpc.KeepaliveParams(keepalive.ServerParameters{Time: aliveAfter, Timeout: aliveWithin}),
		rpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: aliveAfter / 2, PermitWithoutStream: true}),
	)
	l.server.RegisterService(&rpc.ServiceDesc{ServiceName: service, Streams: []rpc.StreamDesc{stream, probe, meet}}, nil)
	l.served.Go(func() { l.server.Serve(gate{at, l}) })
	return l
}

// client returns a connection to a rank, which is made when it is used. Never is called where it cannot be made: the
// peer may not take part, or, if it has listened before, does not do so any more.
func (l *Listener) client(address string, never func(error), listened bool) (*rpc.ClientConn, error) {
	dial := new(net.Dialer).DialContext
	if listened {
		dial = l.dialer(never)
	}
	return rpc.NewClient("passthrough:///"+address,
		rpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }),
		rpc.WithTransportCredentials(guard{l.security, l, never}), rpc.WithDefaultCallOptions(rpc.ForceCodecV2(codec{})),
		rpc.WithNoProxy(), rpc.WithDisableRetry(), rpc.WithDisableServiceConfig(), rpc.WithDisableHealthCheck(),
		rpc.WithInitialWindowSize(streamWindow), rpc.WithInitialConnWindowSize(connWindow),
		rpc.WithReadBufferSize(l.buffer), rpc.WithWriteBufferSize(l.buffer), experimental.WithBufferPool(pool),
		rpc.WithDefaultCallOptions(rpc.MaxCallRecvMsgSize(headerBytes+frameBytes), rpc.MaxRetryRPCBufferSize(0)), // nothing is kept once it is written
		rpc.WithKeepaliveParams(keepalive.ClientParameters{Time: aliveAfter, Timeout: aliveWithin, PermitWithoutStream: true}),
		rpc.WithConnectParams(rpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: l.limits.Handshake,
		}))
}

// An UnreachedError says that TCP does not connect to a rank that listens, or has listened.
type UnreachedError struct {
	From, To string // addresses of ranks
	Err      error
}

func (e *UnreachedError) Error() string { return e.Err.Error() }

func (e *UnreachedError) Unwrap() error { return e.Err }

// Refused reports whether the other machine has answered that nobody listens: the rank has ended, or a firewall says so.
func (e *UnreachedError) Refused() bool { return errors.Is(e.Err, syscall.ECONNREFUSED) }

// toOpen says what may help, or nothing where it is no firewall.
func (e *UnreachedError) toOpen() string {
	source, _, _ := net.SplitHostPort(e.From)
	host, port, err := net.SplitHostPort(e.To)
	if err != nil || errors.As(e.Err, new(*net.DNSError)) {
		return ""
	}
	return fmt.Sprintf("open TCP port %s of %s for %s", port, host, source)
}

// dialer returns a function that connects to a rank that listens. It calls never where that is refused, where the other
// kernel does not answer, or where no try has connected by the limit. How long a kernel is asked is this kernel's to
// count: a process that is late itself would find a time over in which it was connected.
func (l *Listener) dialer(never func(error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { return asks(c, l.limits.Asks) }}
	var end time.Time
	begin := sync.OnceFunc(func() { end = time.Now().Add(l.limits.Dial) }) // a busy process comes to it late
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		begin()
		c, err := d.DialContext(ctx, network, address)
		switch {
		case err == nil:
			end = time.Time{}
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ETIMEDOUT), !end.IsZero() && time.Now().After(end):
			never(&UnreachedError{To: address, Err: err})
		}
		return c, err
	}
}

// Join makes this process a rank of a run, by its name. It is called once; close the endpoint before the listener.
func (l *Listener) Join(rank int, addresses []string, run string) *Endpoint {
	e := &Endpoint{listener: l, rank: rank, addresses: slices.Clone(addresses), run: run, aborted: make(chan struct{}), answers: map[uint64]chan answer{}}
	e.waits = waits.New(e.aborted, func() error { return e.abort }, e.start)
	e.streams, e.endAll = context.WithCancel(context.Background())
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
	defer time.AfterFunc(l.limits.Close, l.server.Stop).Stop()
	l.server.GracefulStop()
	l.served.Wait()
	l.tellRefused()
	return nil
}

// gate is the listener for gRPC's server. Of too many handshakes under way the oldest ends.
type gate struct {
	net.Listener
	l *Listener
}

func (g gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l := g.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handshakes = append(l.handshakes, c); len(l.handshakes) > mostHandshakes {
		l.handshakes[0].Close()
		l.handshakes = slices.Delete(l.handshakes, 0, 1)
	}
	return c, nil
}

// ErrStranger is wrapped by the error of a connection on which one side may not take part: by that of a tls.Config's
// VerifyConnection, and where the other side has refused this one.
var ErrStranger = errors.New("refused")

// guard notes when handshakes end, and logs those that fail.
type guard struct {
	credentials.TransportCredentials
	l        *Listener
	stranger func(error) // of a connection that this rank opens
}

func (g guard) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := g.TransportCredentials.ServerHandshake(c)
	g.l.mu.Lock()
	g.l.handshakes = slices.DeleteFunc(g.l.handshakes, func(x net.Conn) bool { return x == c })
	g.l.mu.Unlock()
	if err != nil {
		g.l.refused(c.RemoteAddr().String(), err)
	}
	return secured, info, err
}

// ClientHandshake notes when a side is a stranger to the other.
func (g guard) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := g.TransportCredentials.ClientHandshake(ctx, authority, c)
	if err != nil {
		g.judge(err)
		return nil, nil, err
	}
	return judged{secured, g}, info, nil
}

// judge ends the call at once where a side is a stranger to the other: it would stay one.
func (g guard) judge(err error) {
	alert, plain := new(net.OpError), new(tls.RecordHeaderError)
	switch {
	case errors.Is(err, ErrStranger):
		g.stranger(err)
	case errors.As(err, &alert) && alert.Op == "remote error":
		g.stranger(fmt.Errorf("%w by the other side: %w", ErrStranger, err))
	case errors.As(err, plain):
		g.stranger(fmt.Errorf("%w: it does not encrypt", ErrStranger))
	}
}

// judged is a connection that its other side may refuse: in TLS 1.3 a client hears so when it reads.
type judged struct {
	net.Conn
	by guard
}

func (c judged) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.by.judge(err)
	}
	return n, err
}

func (g guard) Clone() credentials.TransportCredentials {
	return guard{g.TransportCredentials.Clone(), g.l, g.stranger}
}
