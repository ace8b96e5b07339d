package tcp

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A conn is a connection between two ranks.
type conn struct {
	*wire
	reader io.Reader
	writer io.Writer
	sealed *bufio.Writer // what TLS makes a record of; nil without TLS
	header [headerBytes]byte
	parts  [][]byte // of the message that is read
	batch  batch
	ended  chan struct{} // closed when nothing is read any more
}

// A wire is the TCP connection below TLS, which calls it for each record. It reads and writes several records in one call
// of the system. Until the handshake is over it writes at once and takes little memory.
type wire struct {
	net.Conn
	reader *bufio.Reader

	mu     sync.Mutex // TLS may answer what it reads while frames are written
	writer *bufio.Writer
}

const (
	sealedBytes   = 16 << 10        // the most of TLS
	bufferBytes   = 64 << 10        // of a connection, each way
	silence       = 5 * time.Second // between questions to a silent kernel
	mostSilences  = 4
	aliveAfter    = 2 * silence
	acceptedAfter = aliveAfter + mostSilences*silence
)

func newWire(c net.Conn) *wire {
	if c, ok := c.(*net.TCPConn); ok {
		c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: aliveAfter, Interval: silence, Count: mostSilences})
		endUnaccepted(c, acceptedAfter)
	}
	return &wire{Conn: c, reader: bufio.NewReaderSize(c, 4<<10)}
}

func (w *wire) Read(data []byte) (int, error) { return w.reader.Read(data) }

func (w *wire) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writer == nil {
		return w.Conn.Write(data)
	}
	return w.writer.Write(data)
}

// secure shakes hands as the given side.
func (l *Listener) secure(raw net.Conn, side func(net.Conn, *tls.Config) *tls.Conn) (*conn, error) {
	w := newWire(raw)
	c := &conn{wire: w, reader: w, writer: raw, ended: make(chan struct{})}
	if l.security != nil {
		secured := side(w, l.security)
		if err := secured.Handshake(); err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.writer = bufio.NewWriterSize(raw, bufferBytes)
		w.mu.Unlock()
		c.sealed = bufio.NewWriterSize(secured, sealedBytes)
		c.reader, c.writer = secured, c.sealed
	}
	w.reader = bufio.NewReaderSize(w.reader, bufferBytes)
	return c, nil
}

// flush sends what TLS was given.
func (c *conn) flush() error {
	if c.sealed == nil {
		return nil
	}
	if err := c.sealed.Flush(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wire.writer.Flush()
}

// plain returns the error of a connection without the addresses of its sockets.
func plain(err error) error {
	op := new(net.OpError)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return errors.New("the connection has ended")
	case errors.As(err, &op) && op.Op != "dial":
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}
