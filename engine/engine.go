package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"volley/transport"
	"volley/transport/tcp"
)

// A Run says which rank of a run a process is. A parent gives it over standard input: arguments show secrets to all
// users.
type Run struct {
	Rank, Size int
	Meet       string // host:port at which rank 0 listens, at any port for 0; empty where Join is given the addresses
	Bind       string // host to listen at; empty: loopback where Meet and Advertise are, else all interfaces
	Advertise  string // host, or host:port, at which others reach this rank; empty: that of the route to Meet
	Ports      Ports  // to listen at; zero: any
	Secret     Secret
	Timeout    time.Duration // until all ranks have to have met; 0: any time

	Limits tcp.Patience `json:"-"` // of this process
	Log    *slog.Logger `json:"-"` // gets where this process listens, and who is refused; nil: nothing is logged
}

// Ports is a range of TCP ports.
type Ports struct{ First, Last int }

// UsualPorts are those of ranks that no launcher gathers, so that a firewall can let them through.
var UsualPorts = Ports{7000, 7063}

// String returns the range as UnmarshalText reads it.
func (p Ports) String() string {
	if p == (Ports{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// MarshalText returns the range as UnmarshalText reads it.
func (p Ports) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a range such as 7000-7063, or one port. Empty is any port.
func (p *Ports) UnmarshalText(text []byte) (err error) {
	if *p = (Ports{}); len(text) == 0 {
		return nil
	}
	first, last, isRange := strings.Cut(string(text), "-")
	p.First, err = strconv.Atoi(first)
	if p.Last = p.First; err == nil && isRange {
		p.Last, err = strconv.Atoi(last)
	}
	if err != nil || p.First < 1 || p.Last < p.First || p.Last > 1<<16-1 {
		return fmt.Errorf("ports %q: want a range such as 7000-7063", text)
	}
	return nil
}

// ErrOpen is wrapped by the error of a run that would let everybody connect.
var ErrOpen = errors.New("there is no secret")

// A Listener is a process that listens for its peers.
type Listener struct {
	run      Run
	listener *tcp.Listener
	port     string
	address  string   // "" until it is known
	table    []string // of all ranks, after Join
	met      []int    // after Join: which rank each was when they met

	// Says is what this rank tells the others when they meet. Sets, unless nil, cuts the ranks by that into sets that
	// do not hear of each other: it returns, for each set, the ranks that become its rank 0, 1, …. All ranks have the
	// same Sets. For the listener, the ranks of set 0 are the first, then come those of set 1, and so on.
	Says []byte
	Sets func(texts [][]byte) [][]int
}

// Join makes this process a rank of a run: it listens, and meets the other ranks at run.Meet. All ranks call it. Whoever
// needs more than a transport calls [Listen] and [Listener.Join].
func Join(ctx context.Context, run Run) (transport.Transport, error) {
	if run.Meet == "" {
		return nil, tcp.Inputf("no meeting point: all ranks need the host:port of rank 0")
	}
	p, err := Listen(run)
	if err != nil {
		return nil, err
	}
	e, err := p.Join(ctx, nil, run.Timeout)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return joined{e, p}, nil
}

// A joined rank closes its listener as well.
type joined struct {
	*tcp.Endpoint
	listener *Listener
}

func (j joined) Close() error { return errors.Join(j.Endpoint.Close(), j.listener.Close()) }

// Listen binds this rank's port. It refuses to listen on anything but loopback without a secret.
func Listen(run Run) (*Listener, error) {
	if run.Size < 1 || run.Rank < 0 || run.Rank >= run.Size {
		return nil, tcp.Inputf("rank %d of %d: want ranks from 0 to below their number", run.Rank, run.Size)
	}
	run.Log = cmp.Or(run.Log, slog.New(slog.DiscardHandler))
	meetPort := ""
	if run.Meet != "" {
		var err error
		if _, meetPort, err = net.SplitHostPort(run.Meet); err != nil {
			return nil, tcp.Inputf("meeting point %q: want host:port", run.Meet)
		}
	}
	if run.Bind == "" && loopback(run.Meet) && loopback(run.Advertise) {
		run.Bind = "127.0.0.1"
	}
	var security *tls.Config
	if !run.Secret.IsZero() {
		var err error
		if security, err = run.Secret.tls(); err != nil {
			return nil, err
		}
	} else if run.Bind == "" || !loopback(run.Bind) {
		return nil, tcp.Inputf("rank %d would listen for everybody who can reach it: %w", run.Rank, ErrOpen)
	}
	listener, err := run.listen(meetPort)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if host, zero, _ := net.SplitHostPort(run.Meet); run.Rank == 0 && zero == "0" {
		run.Meet = net.JoinHostPort(host, port)
	}
	p := &Listener{
		run: run, port: port, listener: tcp.Serve(listener, security, run.Limits, run.Log),
	}
	p.listener.Ports = run.Ports.String()
	switch host, port, err := net.SplitHostPort(run.Advertise); {
	case err == nil:
		p.address = net.JoinHostPort(host, port)
	case run.Advertise != "":
		p.address = net.JoinHostPort(run.Advertise, p.port)
	case run.Rank == 0 && run.Meet != "":
		p.address = run.Meet
	case run.Bind != "":
		p.address = net.JoinHostPort(run.Bind, p.port)
	}
	run.Log.Info("listens", "rank", run.Rank, "of", run.Size, "bind", listener.Addr().String(), "advertise", p.address, "tls", security != nil)
	return p, nil
}

// loopback reports whether a host, or the host of host:port, is this machine alone. None is, too.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "" || host == "localhost" || net.ParseIP(host).IsLoopback()
}

// listen binds the port of the meeting point at rank 0, and elsewhere another one of those allowed.
func (r *Run) listen(meetPort string) (net.Listener, error) {
	if r.Rank == 0 && meetPort != "" {
		listener, err := net.Listen("tcp", net.JoinHostPort(r.Bind, meetPort))
		if err != nil {
			err = tcp.Inputf("rank 0 cannot listen at the meeting point %s: %w: give a free port of its host", r.Meet, err)
		}
		return listener, err
	}
	if r.Ports == (Ports{}) {
		return net.Listen("tcp", net.JoinHostPort(r.Bind, "0"))
	}
	n := r.Ports.Last - r.Ports.First + 1
	var last error
	for i := range n {
		port := fmt.Sprint(r.Ports.First + (r.Rank+i)%n) // ranks of one host seldom try the same
		if port == meetPort && n > 1 {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(r.Bind, port))
		if err == nil {
			return listener, nil
		}
		last = err
	}
	return nil, tcp.Inputf("no port of %v is free: %w", r.Ports, last)
}

// Address returns the host:port at which others reach this rank, to be told to who makes the table for Join.
func (p *Listener) Address() string { return p.address }

// Join brings the ranks together, at the addresses of a table or, for nil, at rank 0 within the time (0: any).
func (p *Listener) Join(ctx context.Context, table []string, limit time.Duration) (*tcp.Endpoint, error) {
	if err := transport.CheckTimeout(limit); err != nil {
		return nil, tcp.Inputf("%w", err)
	}
	texts := make([][]byte, len(table))
	for r, address := range table {
		texts[r] = []byte(address)
	}
	if table == nil {
		if err := p.route(ctx, limit); err != nil {
			return nil, err
		}
		mine := fmt.Appendf(nil, "%s %s %s", p.address, rand.Text(), p.Says) // a table like no other run's
		var err error
		contribution := tcp.Contribution{Name: "join", Rank: p.run.Rank, Size: p.run.Size, Data: mine}
		if texts, err = p.listener.Gather(ctx, p.run.Meet, contribution, limit); err != nil {
			return nil, err
		}
	}
	if len(texts) != p.run.Size {
		return nil, tcp.Inputf("%d addresses for %d ranks", len(texts), p.run.Size)
	}
	first, end := 0, len(texts) // of the set of this rank
	if p.Sets != nil {
		texts, first, end = p.cut(texts)
	} else {
		for r := range texts {
			p.met = append(p.met, r)
		}
	}
	digest := sha256.New()
	for r, text := range texts {
		address, _, _ := strings.Cut(string(text), " ")
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, tcp.Inputf("rank %d says that its address is %q: want host:port", r, address)
		}
		p.table = append(p.table, address)
		if first <= r && r < end {
			fmt.Fprintf(digest, "%q", text)
		}
	}
	return p.listener.Join(p.run.Rank-first, p.table[first:end], fmt.Sprintf("%x", digest.Sum(nil))), nil
}

// cut gives all ranks, this one too, those of Sets. It returns what they have said, and the ranks of this one's set.
func (p *Listener) cut(texts [][]byte) (ordered [][]byte, first, end int) {
	says := make([][]byte, len(texts))
	for r, text := range texts {
		if parts := bytes.SplitN(text, []byte(" "), 3); len(parts) == 3 {
			says[r] = parts[2]
		}
	}
	mine := p.run.Rank
	for _, set := range p.Sets(says) {
		if index := slices.Index(set, mine); index >= 0 {
			first, end = len(p.met), len(p.met)+len(set)
			p.run.Rank = first + index
		}
		p.met = append(p.met, set...)
	}
	for _, r := range p.met {
		ordered = append(ordered, texts[r])
	}
	return ordered, first, end
}

// Rank returns the rank of this process in the run, once it has joined.
func (p *Listener) Rank() int { return p.run.Rank }

// route finds the address of this rank on the way to rank 0, whose name may not be known at once.
func (p *Listener) route(ctx context.Context, limit time.Duration) error {
	for begun := time.Now(); p.address == ""; {
		c, err := net.Dial("udp", p.run.Meet) // sends nothing
		if err == nil {
			p.address = net.JoinHostPort(c.LocalAddr().(*net.UDPAddr).IP.String(), p.port)
			c.Close()
			break
		}
		if limit > 0 && time.Since(begun) > limit {
			return fmt.Errorf("rank %d finds no way to rank 0 at %s: %w", p.run.Rank, p.run.Meet, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(routeAgain):
		}
	}
	p.run.Log.InfoContext(ctx, "is reached", "rank", p.run.Rank, "at", p.address)
	return nil
}

const routeAgain = 200 * time.Millisecond

// Gather returns the text of every rank that has met, once for a name, also after an abort. Texts of ranks that
// have ended, or do not come within the time (0: any), are nil, and the error names them. There are none where the rank
// is gone that was rank 0 when they met.
func (p *Listener) Gather(ctx context.Context, name string, mine []byte, limit time.Duration) ([][]byte, error) {
	contribution := tcp.Contribution{Name: "later " + name, Rank: p.met[p.run.Rank], Size: len(p.met), Data: mine}
	texts, err := p.listener.Gather(ctx, p.run.Meet, contribution, limit)
	if texts == nil {
		return nil, err
	}
	var ordered [][]byte
	var absent []string
	for r, rank := range p.met {
		if ordered = append(ordered, texts[rank]); texts[rank] == nil {
			absent = append(absent, fmt.Sprint(r))
		}
	}
	if absent != nil {
		err = fmt.Errorf("of %d ranks these have ended or do not answer: %s", len(ordered), strings.Join(absent, ", "))
	}
	return ordered, err
}

// Close ends all connections. Close the endpoint first.
func (p *Listener) Close() error { return p.listener.Close() }
