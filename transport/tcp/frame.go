package tcp

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// A kind says what a frame is for.
type kind byte

const (
	exchangeFrame kind = iota + 1 // a call: rank b, of protocol a, is a peer of rank c in the run that data names
	meetFrame                     // a call: contributions to gatherings follow
	readyFrame                    // the rank that is called has read the call
	takenFrame                    // the peer is admitted
	refusedFrame                  // it is not; data is why
	headFrame                     // the next message of round a and port b, of n bytes; data is its beginning
	restFrame                     // data is what follows of message c, from 0, of round a and port b
	clearFrame                    // message c of round a and port b may be sent if it has n bytes; else its rest is not wanted
	creditFrame                   // n bytes of heads have been taken
	askFrame                      // question n: for whom does the receiver wait?
	answerFrame                   // of question n: for rank a-1; a = 0 is nobody
	abortFrame                    // rank a has ended the run; data is why
	byeFrame                      // the sender closes, or has closed before the call
	goneFrame                     // a bye has been read, and all before it
	textFrame                     // data is a contribution
	tableFrame                    // data is the answer to a contribution
)

const (
	frameBytes = 256 << 10 // a rest or a text
	headBytes  = 64 << 10
	nameBytes  = 1 << 10  // the name of a run, or a reason
	tableBytes = 64 << 20 // what rank 0 answers

	// earlyBytes bounds the data of heads held of one peer, and earlyHeads their number and that of clear-to-sends.
	earlyBytes = 1 << 20
	earlyHeads = 1 << 16
)

// mostData is how many bytes of data a frame may have. A longer one is refused before memory is taken for it.
var mostData = [tableFrame + 1]uint32{
	exchangeFrame: nameBytes,
	refusedFrame:  nameBytes,
	headFrame:     headBytes,
	restFrame:     frameBytes,
	abortFrame:    nameBytes,
	textFrame:     frameBytes,
	tableFrame:    tableBytes,
}

// headerBytes is the length of a header: kind, a, b, c, n and the length of the data, little-endian.
const headerBytes = 1 + 4 + 4 + 4 + 8 + 4

// A frame is what is sent at once. Its data is a text, or size bytes of a transfer.
type frame struct {
	kind
	a, b, c uint32
	n       uint64
	size    int

	text     []byte // of a frame that is sent, and of a call
	transfer *transfer
	offset   int
}

// errProtocol says that a peer sends what it must not.
func errProtocol(format string, args ...any) error {
	return fmt.Errorf("it sends what it must not: "+format, args...)
}

// next reads the header of the next frame.
func (c *conn) next() (f frame, err error) {
	h := c.header[:]
	if _, err := io.ReadFull(c.reader, h); err != nil {
		return f, err
	}
	word := binary.LittleEndian.Uint32
	size := word(h[21:])
	f = frame{kind: kind(h[0]), a: word(h[1:]), b: word(h[5:]), c: word(h[9:]), n: binary.LittleEndian.Uint64(h[13:]), size: int(size)}
	if f.kind > tableFrame || size > mostData[f.kind] || f.kind == headFrame && uint64(size) > f.n {
		return f, errProtocol("a frame of kind %d with %d bytes", f.kind, size)
	}
	return f, nil
}

// A batch is the frames of one call of the system. Its memory is used again.
type batch struct {
	frames  []frame
	headers [64 * headerBytes]byte
	bytes   int
	buffers net.Buffers
	unsent  net.Buffers
}

// full reports whether the batch takes no more frames.
func (b *batch) full() bool {
	return len(b.frames)*headerBytes == len(b.headers) || b.bytes >= frameBytes
}

func (b *batch) add(f frame) {
	if f.transfer == nil {
		f.size = len(f.text)
	}
	h := b.headers[len(b.frames)*headerBytes:][:0:headerBytes]
	h = append(h, byte(f.kind))
	h = binary.LittleEndian.AppendUint32(h, f.a)
	h = binary.LittleEndian.AppendUint32(h, f.b)
	h = binary.LittleEndian.AppendUint32(h, f.c)
	h = binary.LittleEndian.AppendUint64(h, f.n)
	h = binary.LittleEndian.AppendUint32(h, uint32(f.size))
	b.buffers = append(b.buffers, h)
	if f.transfer != nil {
		b.buffers = f.transfer.cut(b.buffers, f.offset, f.size)
	} else if f.size > 0 {
		b.buffers = append(b.buffers, f.text)
	}
	b.frames = append(b.frames, f)
	b.bytes += f.size
}

// write sends the frames of a batch, and empties it.
func (c *conn) write(b *batch) error {
	b.unsent = b.buffers
	_, err := b.unsent.WriteTo(c.writer)
	if err == nil {
		err = c.flush()
	}
	if err != nil {
		return err
	}
	for _, f := range b.frames {
		switch {
		case f.transfer == nil:
		case f.kind == headFrame:
			f.transfer.passed(f.size + 1)
		default:
			f.transfer.passed(f.size)
		}
	}
	clear(b.buffers)
	clear(b.frames)
	b.frames, b.buffers, b.bytes = b.frames[:0], b.buffers[:0], 0
	return nil
}

// send sends one frame of a connection that has no peer's writer.
func (c *conn) send(f frame) error {
	c.batch.add(f)
	return c.write(&c.batch)
}

// text reads a frame of one kind with its data.
func (c *conn) text(want kind) ([]byte, error) {
	f, err := c.next()
	if err == nil && f.kind != want {
		err = errProtocol("a frame of kind %d, not %d", f.kind, want)
	}
	if err != nil {
		return nil, err
	}
	return c.rest(f)
}

// rest reads the data of a frame. Memory is taken for what has come.
func (c *conn) rest(f frame) (data []byte, err error) {
	for read := 0; read < f.size && err == nil; read = len(data) {
		data = append(data, make([]byte, min(f.size-read, frameBytes))...)
		_, err = io.ReadFull(c.reader, data[read:])
	}
	return data, err
}
