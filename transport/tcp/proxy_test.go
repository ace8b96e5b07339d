package tcp

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"volley/transport"
	"volley/transport/transporttest"
)

// A proxy stands between a rank and those that connect to it.
type proxy struct {
	net.Listener
	to    string
	delay time.Duration // of every piece of at most 16 KiB

	mu    sync.Mutex
	conns []*net.TCPConn
	all   sync.WaitGroup
}

func newProxy(t testing.TB, to string, delay time.Duration) *proxy {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{Listener: at, to: to, delay: delay}
	p.all.Go(func() {
		for {
			in, err := at.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in.(*net.TCPConn), out.(*net.TCPConn))
			p.mu.Unlock()
			p.all.Go(func() { p.pass(in, out) })
			p.all.Go(func() { p.pass(out, in) })
		}
	})
	return p
}

func (p *proxy) pass(from, to net.Conn) {
	defer to.Close()
	piece := make([]byte, 16<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			time.Sleep(p.delay)
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// each does something to all connections.
func (p *proxy) each(do func(c *net.TCPConn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		do(c)
	}
}

func (p *proxy) close() {
	p.Close()
	p.each(func(c *net.TCPConn) { c.Close() })
	p.all.Wait()
}

// serveProxied returns what listens for a run in which all connections pass proxies.
func serveProxied(t testing.TB, n int, delay time.Duration, limits Patience) (listeners []*Listener, proxies []*proxy, addresses []string) {
	for range n {
		at, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		p := newProxy(t, at.Addr().String(), delay)
		listeners, proxies, addresses = append(listeners, Serve(at, nil, limits, nil)), append(proxies, p), append(addresses, p.Addr().String())
	}
	return listeners, proxies, addresses
}

func newProxied(t testing.TB, n int, delay time.Duration, limits Patience) (run []transport.Transport, proxies []*proxy) {
	listeners, proxies, addresses := serveProxied(t, n, delay, limits)
	for r, l := range listeners {
		run = append(run, proxied{member{l.Join(r, addresses, "test")}, proxies[r]})
	}
	return run, proxies
}

// proxied is a rank whose Close ends its proxy as well.
type proxied struct {
	member
	proxy *proxy
}

func (m proxied) Close() error {
	err := m.member.Close()
	m.proxy.close()
	return err
}

func TestDelayed(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
		run, _ := newProxied(t, n, 50*time.Microsecond, never)
		return run
	})
}

// TestCut breaks the connections in the middle of a long message: all ranks end, and name a peer.
func TestCut(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(c *net.TCPConn){
		"cut":         func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
		"half-closed": func(c *net.TCPConn) { c.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			run, proxies := newProxied(t, 2, 20*time.Millisecond, Patience{})
			var both sync.WaitGroup
			both.Go(func() { transport.Send(t.Context(), run[0], 1, transport.Tag{}) })
			if err := transport.Receive(t.Context(), run[1], 0, transport.Tag{}); err != nil {
				t.Fatal(err) // they are connected now
			}
			both.Wait()
			time.AfterFunc(100*time.Millisecond, func() {
				for _, p := range proxies {
					p.each(hurt)
				}
			})
			errs := make([]error, 2)
			data := make([]byte, 8<<20)
			both.Go(func() { errs[0] = transport.Send(t.Context(), run[0], 1, transport.Tag{}, data) })
			both.Go(func() { errs[1] = transport.Receive(t.Context(), run[1], 0, transport.Tag{}, make([]byte, len(data))) })
			both.Wait()
			for r, err := range errs {
				aborted := new(transport.AbortError)
				if !errors.As(err, &aborted) || !strings.Contains(err.Error(), "is gone or cannot be reached") || strings.Contains(err.Error(), "context canceled") {
					t.Errorf("rank %d: %v", r, err)
				}
			}
			for _, e := range run {
				e.Close()
			}
		})
	}
}

// TestCutEarly breaks a connection before the peer has taken the stream, as it joins late. Yet it hears of the abort, or of
// the connection.
func TestCutEarly(t *testing.T) {
	listeners, proxies, addresses := serveProxied(t, 2, 0, Patience{})
	first := member{listeners[0].Join(0, addresses, "test")}
	heard := make(chan error)
	go func() { heard <- transport.Receive(t.Context(), first, 1, transport.Tag{}, []byte{0}) }()
	for !runs("(*Listener).admit") || runs("(*Listener).dial") { // until the caller has heard that the other rank is ready
		time.Sleep(time.Millisecond)
	}
	proxies[1].each(func(c *net.TCPConn) { c.Close() })
	err := <-heard
	late := member{listeners[1].Join(1, addresses, "test")}
	for rank, err := range []error{err, transport.Receive(t.Context(), late, 0, transport.Tag{}, []byte{0})} {
		if !errors.As(err, new(*transport.AbortError)) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	for i, m := range []member{first, late} {
		proxied{m, proxies[i]}.Close()
	}
}
