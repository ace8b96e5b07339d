package engine

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"volley/transport/tcp"
	"volley/transport/transporttest"
)

// TestJunk has 600 connections say what no rank says: the log tells of them in a line.
func TestJunk(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p, err := Listen(Run{Size: 2, Meet: "127.0.0.1:0", Secret: NewSecret(), Limits: tcp.Patience{Refused: time.Hour}, Log: to})
	must(t, err)
	for i := range 600 {
		c, err := net.Dial("tcp", p.Address())
		must(t, err)
		fmt.Fprintf(c, "GET /%d HTTP/1.0\r\n\r\n", i)
		io.Copy(io.Discard, c)
		c.Close()
	}
	p.Close()
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"refused connections" count=600 first=127.0.0.1:`) || !strings.Contains(text, "does not look like a TLS handshake") {
		t.Error(text)
	}
}

// TestStrangers has two processes meet that do not know each other by what they show: neither takes the other for a rank.
func TestStrangers(t *testing.T) {
	t.Parallel()
	own := func(run *Run) { run.Secret = NewSecret() }
	nothing := func(*Run) {}
	for name, c := range map[string]struct {
		first, second func(run *Run)
		want          string // in the error of rank 1
	}{
		"nothing":            {own, nothing, "cannot meet rank 0"},
		"another secret":     {own, own, "refused"},
		"without encryption": {nothing, own, "refused: it does not encrypt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := runsOf(2, transporttest.Free(t), Secret{})
			c.first(&runs[0])
			c.second(&runs[1])
			runs[1].Limits.Answer = transporttest.Limit
			if name == "nothing" { // who does not encrypt hears no reason
				runs[1].Limits.Answer = 10 * short
			}
			_, errs := joinAll(t, short, runs...)
			if errs[0] == nil || !strings.Contains(errs[0].Error(), "have not come to rank 0 within 30ms: 1") || errs[1] == nil || !strings.Contains(errs[1].Error(), c.want) {
				t.Errorf("rank 0: %v; rank 1: %v; want %q", errs[0], errs[1], c.want)
			}
			if stranger := errors.Is(errs[1], tcp.ErrStranger); stranger != (name != "nothing") {
				t.Errorf("rank 1: %v: a stranger: %v", errs[1], stranger)
			}
		})
	}
}

// TestStrangerKey has a client with the key of another run, which looks away: rank 0 refuses it before it reads
// anything.
func TestStrangerKey(t *testing.T) {
	t.Parallel()
	meet := transporttest.Free(t)
	p, err := Listen(Run{Size: 2, Meet: meet, Secret: NewSecret()})
	must(t, err)
	defer p.Close()
	foreign, err := NewSecret().tls()
	must(t, err)
	for name, change := range map[string]func(c *tls.Config){
		"another key":    func(c *tls.Config) {},
		"no certificate": func(c *tls.Config) { c.Certificates = nil },
		"TLS 1.2":        func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
	} {
		own := foreign.Clone()
		own.VerifyConnection, own.NextProtos = nil, []string{"h2"}
		change(own)
		c, err := tls.Dial("tcp", meet, own)
		if err == nil { // in TLS 1.3 the client is through first
			c.SetDeadline(time.Now().Add(transporttest.Limit))
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "remote error: tls") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyConnections has 1,000 connections that do not finish a handshake: the ranks meet, memory stays, and
// the connections end.
func TestManyConnections(t *testing.T) {
	meet := transporttest.Free(t)
	runs := runsOf(2, meet, NewSecret())
	runs[0].Limits.Handshake = 300 * time.Millisecond // rank 1 tries until it gets through
	first, err := Listen(runs[0])
	must(t, err)
	defer first.Close()
	before := heap()
	var open []net.Conn
	for i := range 1000 {
		c, err := net.Dial("tcp", meet)
		must(t, err)
		defer c.Close()
		open = append(open, c)
		io.WriteString(c, "\x16\x03\x01\x40\x00\x01"[:i%7]) // a ClientHello begins so
	}
	grown := int64(heap()) - int64(before)
	t.Logf("1,000 connections take %d KiB", grown>>10)
	if grown > 16<<20 {
		t.Errorf("1,000 connections take %d KiB of heap", grown>>10)
	}
	joined := make(chan error, 1)
	go func() {
		_, errs := joinAll(t, transporttest.Limit, runs[1])
		joined <- errs[0]
	}()
	_, err = first.Join(t.Context(), nil, transporttest.Limit)
	must(t, errors.Join(err, <-joined))
	for i, c := range open {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d is still open", i)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestReadSecret reads secrets from where they may be, and refuses those that others can read.
func TestReadSecret(t *testing.T) {
	want := NewSecret()
	text, _ := want.MarshalText()
	file := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(file, append(text, '\n'), 0o600))
	t.Setenv(SecretVariable, string(text))
	for _, name := range []string{file, ""} {
		if s, err := ReadSecret(name); err != nil || s != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, there := os.LookupEnv(SecretVariable); there {
		t.Error("the variable is still there for children")
	}
	if s, err := ReadSecret(""); err != nil || !s.IsZero() {
		t.Errorf("none: %v", err)
	}
	must(t, os.Chmod(file, 0o640))
	for _, name := range []string{file, file + ".not"} {
		if s, err := ReadSecret(name); err == nil || !s.IsZero() || strings.Contains(err.Error(), string(text)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
