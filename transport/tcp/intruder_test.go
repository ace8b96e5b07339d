package tcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley/transport"
	"volley/transport/transporttest"
)

// forged is a frame in its bytes.
func forged(k kind, a, b uint32, n uint64, data string) []byte {
	f := []byte{byte(k)}
	f = binary.LittleEndian.AppendUint32(f, a)
	f = binary.LittleEndian.AppendUint32(f, b)
	f = binary.LittleEndian.AppendUint32(f, 0)
	f = binary.LittleEndian.AppendUint64(f, n)
	return append(binary.LittleEndian.AppendUint32(f, uint32(len(data))), data...)
}

// An intruder is a peer that says what it likes.
type intruder struct{ *conn }

// intrude connects to a rank.
func intrude(t *testing.T, tr transport.Transport) intruder {
	t.Helper()
	raw, err := net.Dial("tcp", tr.(member).addresses[tr.Rank()])
	must(t, err)
	t.Cleanup(func() { raw.Close() })
	raw.SetDeadline(time.Now().Add(transporttest.Limit))
	open, _ := (&Listener{}).secure(raw, nil)
	return intruder{open}
}

// answer returns what a rank answers to a call, once it is ready.
func (c intruder) answer() (f frame, text string, err error) {
	if f, _, err = c.hear(); err != nil || f.kind != readyFrame {
		return f, "", cmp.Or(err, fmt.Errorf("a frame of kind %d", f.kind))
	}
	return c.hear()
}

// call makes an intruder a rank of the run.
func call(t *testing.T, tr transport.Transport, rank int) intruder {
	t.Helper()
	c := intrude(t, tr)
	c.say(t, hello(Protocol, "test", rank, tr.Rank()))
	if f, text, err := c.answer(); err != nil || f.kind != takenFrame {
		t.Fatalf("a frame of kind %d, %q, %v", f.kind, text, err)
	}
	return c
}

func hello(protocol int, run string, rank, to int) []byte {
	f := forged(exchangeFrame, uint32(protocol), uint32(rank), 0, run)
	binary.LittleEndian.PutUint32(f[9:], uint32(to))
	return f
}

// say sends frames; a rank that refuses one hears no more.
func (c intruder) say(t *testing.T, frames ...[]byte) {
	for _, f := range frames {
		c.Conn.Write(f)
	}
}

func (c intruder) hear() (f frame, text string, err error) {
	if f, err = c.next(); err != nil {
		return f, "", err
	}
	data, err := c.rest(f)
	return f, string(data), err
}

// TestHello refuses who is not a peer, and goes on.
func TestHello(t *testing.T) {
	t.Parallel()
	run := newRun(t, 3, Patience{Close: time.Millisecond})
	for _, c := range []struct {
		hello []byte
		want  string // "": the connection ends without a word
	}{
		{nil, ""},
		{[]byte("GET / HTTP/1.0\r\n\r\n and more"), ""},
		{forged(headFrame, 0, 0, 1, "x"), ""},
		{forged(99, 0, 0, 0, ""), ""},
		{hello(Protocol, strings.Repeat("x", nameBytes+1), 1, 0), ""},
		{hello(Protocol+1, "test", 1, 0), "protocol 7"},
		{hello(Protocol, "other", 1, 0), "another run"},
		{hello(Protocol, "test", 0, 0), "not another rank"},
		{hello(Protocol, "test", 3, 0), "not another rank"},
		{hello(Protocol, "test", -1, 0), "not another rank"},
		{hello(Protocol, "test", 1, 2), "looks for rank 2"},
	} {
		intruder := intrude(t, run[0])
		intruder.say(t, c.hello)
		intruder.Conn.(*net.TCPConn).CloseWrite()
		f, text, err := intruder.answer()
		if c.want == "" && err == nil || c.want != "" && (f.kind != refusedFrame || !strings.Contains(text, c.want)) {
			t.Errorf("%.40q: a frame of kind %d, %q, %v", c.hello, f.kind, text, err)
		}
	}
	if err := transport.Send(t.Context(), run[0], 2, transport.Tag{}, []byte{1}); err != nil {
		t.Errorf("the run does not go on: %v", err)
	}
	got := make([]byte, 1)
	call(t, run[0], 2).say(t, forged(headFrame, 0, 0, 1, "\x07"))
	if err := transport.Receive(t.Context(), run[0], 2, transport.Tag{}, got); err != nil || got[0] != 7 {
		t.Errorf("rank 2, which has not called: %v, %v", got, err)
	}
	again := intrude(t, run[0])
	again.say(t, hello(Protocol, "test", 2, 0))
	if f, text, err := again.answer(); f.kind != refusedFrame || !strings.Contains(text, "connected already") {
		t.Errorf("rank 2 twice: %v, %v, %v", f.kind, text, err)
	}
}

// TestClosedBefore has a rank first use another one that has closed: the run goes on.
func TestClosedBefore(t *testing.T) {
	t.Parallel()
	run := newRun(t, 3, Patience{Abort: time.Millisecond})
	run[1].(member).Endpoint.Close()
	q := run[0].NewQueue()
	for _, size := range []int{1, 2 * headBytes} { // posted before the rank hears of it
		q.Post(&transport.Transfer{Rank: 1, Parts: [][]byte{make([]byte, size)}})
	}
	for range 2 {
		if _, err := q.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("a send to it: %v", err)
		}
	}
	if err := transport.Send(t.Context(), run[0], 2, transport.Tag{}, []byte{1}); err != nil {
		t.Errorf("the run does not go on: %v", err)
	}
}

// TestReadyOnce has a handshake end, as it is too late or as there are too many, before the rank has read the call: it has
// not said that it is ready, so that a rank would call again.
func TestReadyOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handshake time.Duration
		others    int
	}{"late": {100 * time.Millisecond, 0}, "many": {transporttest.Limit, mostHandshakes}} {
		run := newRun(t, 2, Patience{Handshake: c.handshake, Close: time.Millisecond})
		first := intrude(t, run[0])
		first.say(t, hello(Protocol, "test", 1, 0)[:headerBytes])
		for range c.others {
			intrude(t, run[0])
		}
		if f, _, err := first.hear(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a frame of kind %d, %v", name, f.kind, err)
		}
	}
}

// TestHeldOfPeer has a peer send what is small or needs no answer: it takes little memory.
func TestHeldOfPeer(t *testing.T) {
	t.Parallel()
	p := alone(2).peers[1]
	for i := range uint32(100) {
		for _, err := range []error{
			take(p, frame{kind: headFrame, n: 1}, "x"),
			take(p, frame{kind: byeFrame}, ""),
			take(p, frame{kind: clearFrame, a: 1 + i, c: 1 << 31}, ""),
		} {
			must(t, err)
		}
	}
	if held := cap(p.lines[transport.Tag{}].early[0].data); held > 64 {
		t.Errorf("a byte takes %d", held)
	}
	if len(p.urgent) != 1 || p.clears != len(p.lines)-1 {
		t.Errorf("%d frames to send; %d clear-to-sends of %d tags", len(p.urgent), p.clears, len(p.lines)-1)
	}
}

// TestForgedFrames has a peer send what it must not: the run ends, and the error names the peer.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", headBytes)
	many := func(n int, frame func(i uint32) []byte) (frames [][]byte) {
		for i := range n {
			frames = append(frames, frame(uint32(i)))
		}
		return frames
	}
	for name, frames := range map[string][][]byte{
		"short":                 {{byte(headFrame)}},
		"a second hello":        {hello(Protocol, "test", 1, 0)},
		"a contribution":        {forged(textFrame, 0, 0, 0, "1")},
		"a table":               {append(forged(tableFrame, 0, 0, 0, "")[:headerBytes-4], 0, 0, 0, 4)},
		"unknown":               {forged(99, 0, 0, 0, "")},
		"too long a head":       {forged(headFrame, 1, 0, 1<<20, long+"x")},
		"more than its message": {forged(headFrame, 1, 0, 3, "1234")},
		"a huge message":        {forged(headFrame, 1, 0, 1<<63, "1")},
		"early messages":        many(earlyBytes/headBytes+1, func(i uint32) []byte { return forged(headFrame, i, 0, headBytes, long) }),
		"many early messages":   many(earlyHeads+1, func(uint32) []byte { return forged(headFrame, 5, 0, 0, "") }),
		"a rest nobody cleared": {forged(restFrame, 1, 0, 0, "1")},
		"a rest of a small one": {forged(headFrame, 1, 0, 1, "1"), forged(restFrame, 1, 0, 0, "1")},
		"clears of nothing":     many(earlyHeads+1, func(i uint32) []byte { return forged(clearFrame, i, 0, 1<<40, "") }),
		"too much credit":       {forged(creditFrame, 0, 0, 1<<60, "")},
		"an abort of nobody":    {forged(abortFrame, 2, 0, 0, "")},
		"too long a text":       {forged(abortFrame, 0, 0, 0, long)},
		"data in a question":    {forged(askFrame, 0, 0, 0, "1")},
		"longer than an int":    {append(forged(abortFrame, 0, 0, 0, "")[:headerBytes-4], 0, 0, 0, 0x80)},
		"longer than a frame":   {forged(headFrame, 1, 0, 1<<30, long), forged(restFrame, 1, 0, 0, strings.Repeat("x", frameBytes+1))},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t, 2, Patience{Close: time.Millisecond})
			c := call(t, run[0], 1)
			c.say(t, frames...)
			c.Conn.(*net.TCPConn).CloseWrite()
			err := transport.Receive(t.Context(), run[0], 1, transport.Tag{Round: 999}, make([]byte, 4))
			aborted, ok := err.(*transport.AbortError)
			if !ok || !strings.Contains(aborted.Cause.Error(), "rank 1, at") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestOversized asks for a message that its sender makes longer: nothing is taken for it.
func TestOversized(t *testing.T) {
	t.Parallel()
	run := newRun(t, 2, Patience{Close: time.Millisecond})
	size := uint64(1) << 40
	call(t, run[0], 1).say(t, forged(headFrame, 0, 0, size, "1"))
	err := transport.Receive(t.Context(), run[0], 1, transport.Tag{}, make([]byte, 4))
	wrong, ok := err.(*transport.LengthError)
	if !ok || wrong.Got[0] != int(size) {
		t.Errorf("got %v", err)
	}
}

// FuzzFrames gives a rank what a peer may send after its handshake: it never panics, and takes no more memory than
// its bounds.
func FuzzFrames(f *testing.F) {
	for k := range tableFrame + 2 {
		f.Add(append(forged(headFrame, 0, 0, 3, "abc"), forged(k, 0, 0, 1, "x")...))
	}
	f.Add(append(forged(headFrame, 1, 0, 1<<40, "abc"), forged(restFrame, 1, 0, 0, "x")...))
	f.Fuzz(func(t *testing.T, text []byte) {
		e := alone(2)
		p := e.peers[1]
		q := e.NewQueue()
		q.Post(
			&transport.Transfer{Rank: 1, Receive: true, Parts: [][]byte{make([]byte, 3)}},
			&transport.Transfer{Rank: 1, Receive: true, Tag: transport.Tag{Round: 1}, Parts: [][]byte{make([]byte, 2*headBytes)}},
			&transport.Transfer{Rank: 1, Parts: [][]byte{make([]byte, 2*headBytes)}},
		)
		c := &conn{reader: bytes.NewReader(text), writer: io.Discard}
		for {
			f, err := c.next()
			if err != nil || p.take(c, f) != nil {
				break
			}
			p.collect(&c.batch)
			c.write(&c.batch)
		}
		held := 0
		for _, l := range p.lines {
			for _, m := range l.early {
				held += len(m.data)
			}
		}
		if held > earlyBytes || p.heads > earlyHeads || p.clears > earlyHeads || p.credit > earlyBytes {
			t.Errorf("%d bytes in %d early heads, credit %d", held, p.heads, p.credit)
		}
	})
}

// FuzzGather gives rank 0 what a peer may say when the ranks meet.
func FuzzGather(f *testing.F) {
	f.Add([]byte(`{"Protocol":5,"Name":"join","Rank":1,"Size":2,"Data":"AA=="}`))
	f.Add([]byte(`{"Protocol":5,"Name":"join","Rank":1000000000,"Size":1000000000}`))
	f.Add([]byte(`{"Protocol":5,"Name":"other","Rank":1,"Size":2}`))
	f.Add([]byte(`{"Rank":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		synctest.Test(t, func(t *testing.T) { // in which waits take no time
			l := &Listener{meets: t.Context(), log: slog.New(slog.DiscardHandler), gathered: map[string]*gathering{}, changed: make(chan struct{})}
			said := make(chan error, 1)
			go func() {
				texts, err := l.Gather(t.Context(), "", Contribution{Name: "join", Rank: 0, Size: 2}, 20*time.Millisecond)
				if len(texts) != 2 {
					err = fmt.Errorf("%d texts: %w", len(texts), err)
				}
				said <- err
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := l.answer(&caller{ctx, "a:1"}, text)
			if first := <-said; first == nil && err != nil {
				t.Errorf("rank 0 has all, and answers %v", err)
			}
		})
	})
}
