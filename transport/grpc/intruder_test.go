package grpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"volley/transport"
	"volley/transport/transporttest"
)

// forged is a frame in its bytes.
func forged(k kind, a, b uint32, n uint64, data string) []byte {
	f := []byte{byte(k)}
	f = binary.LittleEndian.AppendUint32(f, a)
	f = binary.LittleEndian.AppendUint32(f, b)
	f = binary.LittleEndian.AppendUint32(f, 0)
	return append(binary.LittleEndian.AppendUint64(f, n), data...)
}

// call opens a stream to rank 0 as a peer that says what it likes.
func call(t *testing.T, address, hello string) rpc.ClientStream {
	t.Helper()
	conn, err := rpc.NewClient("passthrough:///"+address, rpc.WithTransportCredentials(insecure.NewCredentials()), rpc.WithDefaultCallOptions(rpc.ForceCodecV2(codec{})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Limit)
	t.Cleanup(func() { cancel(); conn.Close() })
	s, err := conn.NewStream(metadata.AppendToOutgoingContext(ctx, helloKey, hello), &exchange, "/volley/Exchange")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// end returns the error with which a stream ends.
func end(s rpc.ClientStream) error {
	for {
		if err := s.RecvMsg(reader(func(*frame, *mem.Reader) error { return nil })); err != nil {
			return err
		}
	}
}

// TestHello refuses who is not a peer, and goes on.
func TestHello(t *testing.T) {
	t.Parallel()
	run := newRun(t, 3, Limits{Close: time.Millisecond})
	address := run[0].(member).addresses[0]
	for hello, want := range map[string]string{
		"":                        "who it is",
		"nonsense":                "who it is",
		"4 test 1":                "who it is",
		"5 test 1 0":              "protocol 5",
		"4 other 1 0":             "another run",
		"4 test 0 0":              "not another rank",
		"4 test 3 0":              "not another rank",
		"4 test -1 0":             "not another rank",
		"4 test 1 2":              "looks for rank 2",
		strings.Repeat("1", 2000): "who it is",
	} {
		if err := end(call(t, address, hello)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", hello, err)
		}
	}
	if err := transport.Send(t.Context(), run[0], 2, transport.Tag{}, []byte{1}); err != nil {
		t.Errorf("the run does not go on: %v", err)
	}
	s, got := call(t, address, "4 test 2 0"), make([]byte, 1)
	if err := s.SendMsg(&frame{kind: headFrame, n: 1, data: [][]byte{{7}}}); err != nil {
		t.Fatal(err)
	}
	if err := transport.Receive(t.Context(), run[0], 2, transport.Tag{}, got); err != nil || got[0] != 7 {
		t.Errorf("rank 2, which has not called: %v, %v", got, err)
	}
}

// TestClosedBefore has a rank first use another one that has closed: the run goes on.
func TestClosedBefore(t *testing.T) {
	t.Parallel()
	run := newRun(t, 3, Limits{Abort: time.Millisecond})
	run[1].(member).Endpoint.Close()
	q := run[0].NewQueue()
	q.Post(&transport.Transfer{Rank: 1, Parts: [][]byte{make([]byte, 2*headBytes)}})
	if _, err := q.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("a send to it: %v", err)
	}
	if err := transport.Send(t.Context(), run[0], 2, transport.Tag{}, []byte{1}); err != nil {
		t.Errorf("the run does not go on: %v", err)
	}
}

// TestUnreachable calls where nobody listens: the error says so, without gRPC's inner parts.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Serve(at, 2, nil, Limits{}, nil)
	defer l.Close()
	_, err = l.Probe(t.Context(), "127.0.0.1:1", true)
	if err == nil || err.Error() != "dial tcp 127.0.0.1:1: connect: connection refused" {
		t.Error(err)
	}
}

// TestRankTwice refuses a second process of a rank.
func TestRankTwice(t *testing.T) {
	t.Parallel()
	run := newRun(t, 2, Limits{Close: time.Millisecond})
	address := run[0].(member).addresses[0]
	first := call(t, address, "4 test 1 0")
	if err := first.SendMsg(&frame{kind: headFrame, n: 1, data: [][]byte{{7}}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Limit)
	defer cancel()
	got := make([]byte, 1)
	if err := transport.Receive(ctx, run[0], 1, transport.Tag{}, got); err != nil || got[0] != 7 {
		t.Fatal(got, err)
	}
	if err := end(call(t, address, "4 test 1 0")); err == nil || !strings.Contains(err.Error(), "connected already") {
		t.Errorf("the second: %v", err)
	}
}

// TestForgedFrames has a peer send what it must not: the run ends, and the error names the peer.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", headBytes)
	var flood [][]byte
	for i := range earlyBytes/headBytes + 1 {
		flood = append(flood, forged(headFrame, uint32(i), 0, headBytes, long))
	}
	var heads [][]byte
	for range earlyHeads + 1 {
		heads = append(heads, forged(headFrame, 5, 0, 0, ""))
	}
	var clears [][]byte
	for i := range earlyHeads + 1 {
		clears = append(clears, forged(clearFrame, uint32(i), 0, 1<<40, ""))
	}
	for name, frames := range map[string][][]byte{
		"short":                 {{byte(headFrame)}},
		"empty":                 {{}},
		"unknown":               {forged(99, 0, 0, 0, "")},
		"too long a head":       {forged(headFrame, 1, 0, 1<<20, long+"x")},
		"more than its message": {forged(headFrame, 1, 0, 3, "1234")},
		"a huge message":        {forged(headFrame, 1, 0, 1<<63, "1")},
		"early messages":        flood,
		"many early messages":   heads,
		"a rest nobody cleared": {forged(restFrame, 1, 0, 0, "1")},
		"a rest of a small one": {forged(headFrame, 1, 0, 1, "1"), forged(restFrame, 1, 0, 0, "1")},
		"clears of nothing":     clears,
		"too much credit":       {forged(creditFrame, 0, 0, 1<<60, "")},
		"an abort of nobody":    {forged(abortFrame, 2, 0, 0, "")},
		"too long a text":       {forged(abortFrame, 0, 0, 0, long)},
		"data in a question":    {forged(askFrame, 0, 0, 0, "1")},
		"longer than a frame":   {[]byte(strings.Repeat("x", frameBytes+headerBytes+1))},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t, 2, Limits{Close: time.Millisecond})
			s := call(t, run[0].(member).addresses[0], "4 test 1 0")
			for _, f := range frames {
				if s.SendMsg(&f) != nil {
					break // it has been refused
				}
			}
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
	run := newRun(t, 2, Limits{Close: time.Millisecond})
	s := call(t, run[0].(member).addresses[0], "4 test 1 0")
	size := uint64(1) << 40
	f := forged(headFrame, 0, 0, size, "1")
	if err := s.SendMsg(&f); err != nil {
		t.Fatal(err)
	}
	err := transport.Receive(t.Context(), run[0], 1, transport.Tag{}, make([]byte, 4))
	wrong, ok := err.(*transport.LengthError)
	if !ok || wrong.Got[0] != int(size) {
		t.Errorf("got %v", err)
	}
}

// FuzzFrames gives a rank what a peer may send after its handshake: it never panics, and takes no more memory than
// its bounds.
func FuzzFrames(f *testing.F) {
	for k := range goneFrame + 2 {
		f.Add(append(frameText(forged(headFrame, 0, 0, 3, "abc")), frameText(forged(k, 0, 0, 1, "x"))...))
	}
	f.Add(append(frameText(forged(headFrame, 1, 0, 1<<40, "abc")), frameText(forged(restFrame, 1, 0, 0, "x"))...))
	f.Fuzz(func(t *testing.T, text []byte) {
		e := (&Listener{joined: make(chan struct{})}).Join(0, []string{"a:1", "b:2"}, "fuzz")
		p := e.peers[1]
		p.link = silent{} // nothing is dialled
		q := e.NewQueue()
		q.Post(
			&transport.Transfer{Rank: 1, Receive: true, Parts: [][]byte{make([]byte, 3)}},
			&transport.Transfer{Rank: 1, Receive: true, Tag: transport.Tag{Round: 1}, Parts: [][]byte{make([]byte, 2*headBytes)}},
			&transport.Transfer{Rank: 1, Parts: [][]byte{make([]byte, 2*headBytes)}},
		)
		for len(text) > 2 {
			n := min(int(binary.LittleEndian.Uint16(text)), len(text)-2)
			data := mem.BufferSlice{mem.SliceBuffer(text[2:][:n])}
			text = text[2+n:]
			if (codec{}).Unmarshal(data, reader(p.take)) != nil {
				break
			}
			for f := p.next(); f != nil && f.kind != restFrame; f = p.next() {
			}
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

// frameText puts the length of a frame before it.
func frameText(f []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(nil, uint16(len(f))), f...)
}

type silent struct{ stream }

// FuzzGather gives rank 0 what a peer may say when the ranks meet.
func FuzzGather(f *testing.F) {
	f.Add([]byte(`{"Protocol":4,"Name":"join","Rank":1,"Size":2,"Data":"AA=="}`))
	f.Add([]byte(`{"Protocol":4,"Name":"join","Rank":1000000000,"Size":1000000000}`))
	f.Add([]byte(`{"Protocol":4,"Name":"other","Rank":1,"Size":2}`))
	f.Add([]byte(`{"Rank":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		synctest.Test(t, func(t *testing.T) { // in which waits take no time
			l := &Listener{log: slog.New(slog.DiscardHandler), gathered: map[string]*gathering{}, begun: make(chan struct{})}
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
			_, err := l.answer(ctx, text)
			if first := <-said; first == nil && err != nil {
				t.Errorf("rank 0 has all, and answers %v", err)
			}
		})
	})
}
