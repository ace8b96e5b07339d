package grpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
)

// A kind says what a frame is for.
type kind byte

const (
	headFrame   kind = iota + 1 // the next message of round a and port b, of n bytes; data is its beginning
	restFrame                   // data is what follows of message c, from 0, of round a and port b
	clearFrame                  // message c of round a and port b may be sent if it has n bytes; else its rest is not wanted
	creditFrame                 // n bytes of heads have been taken
	askFrame                    // question n: for whom does the receiver wait?
	answerFrame                 // of question n: for rank a-1 since b ms; a = 0 is nobody
	abortFrame                  // rank a has ended the run; data is why
	byeFrame                    // the sender closes
	goneFrame                   // a bye has been read, and all before it
)

const (
	// frameBytes bounds the data of a frame.
	frameBytes = 256 << 10

	// headBytes bounds the data of a head.
	headBytes = 64 << 10

	// earlyBytes bounds the data of heads held of one peer, and earlyHeads their number and that of clear-to-sends.
	earlyBytes = 1 << 20
	earlyHeads = 1 << 16

	// textBytes bounds the data of frames without messages.
	textBytes = 1 << 10
)

// headerBytes is the length of a frame's header: kind, a, b, c and n, little-endian.
const headerBytes = 1 + 4 + 4 + 4 + 8

type frame struct {
	kind
	a, b, c uint32
	n       uint64
	data    [][]byte // sent from where it lies

	written func()       // unless nil: data may be changed again
	left    atomic.Int32 // what of the frame is not yet written
}

// buffers returns the frame for gRPC. Long parts of data are not copied.
func (f *frame) buffers() mem.BufferSlice {
	small := append(make([]byte, 0, headerBytes), byte(f.kind))
	small = binary.LittleEndian.AppendUint32(small, f.a)
	small = binary.LittleEndian.AppendUint32(small, f.b)
	small = binary.LittleEndian.AppendUint32(small, f.c)
	small = binary.LittleEndian.AppendUint64(small, f.n)
	f.left.Store(1)
	var all mem.BufferSlice
	for _, part := range f.data {
		if mem.IsBelowBufferPoolingThreshold(len(part)) {
			small = append(small, part...)
			continue
		}
		f.left.Add(1)
		part = slices.Clip(part)
		all = append(all, mem.SliceBuffer(small), mem.NewBuffer(&part, f))
		small = nil
	}
	return append(all, mem.SliceBuffer(small))
}

// Get is for [mem.BufferPool]: nobody calls it.
func (f *frame) Get(n int) *[]byte { b := make([]byte, n); return &b }

// Put notes that a part has been written, or that gRPC has taken the frame.
func (f *frame) Put(*[]byte) {
	if f.left.Add(-1) == 0 && f.written != nil {
		f.written()
	}
}

// pool has buffers of HTTP/2's frames, which are read whole: gRPC's own pool clears them first.
var pool = &dirtyPool{sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}}

type dirtyPool struct{ buffers sync.Pool }

func (p *dirtyPool) Get(n int) *[]byte {
	b := p.buffers.Get().(*[]byte)
	*b = slices.Grow((*b)[:0], n)[:n]
	return b
}

func (p *dirtyPool) Put(b *[]byte) { p.buffers.Put(b) }

// A reader takes the frames of a stream: gRPC's buffers are gone when it returns.
type reader func(f *frame, data *mem.Reader) error

// codec hands frames and byte slices to gRPC without copying.
type codec struct{}

func (codec) Name() string { return "volley" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *frame:
		return v.buffers(), nil
	case *[]byte:
		return mem.BufferSlice{mem.SliceBuffer(*v)}, nil
	}
	return nil, fmt.Errorf("grpc: cannot send a %T", v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case reader:
		from := data.Reader()
		defer from.Close()
		f, err := readFrame(from)
		if err != nil {
			return err
		}
		return v(f, from)
	case *[]byte:
		*v = data.Materialize()
		return nil
	}
	return fmt.Errorf("grpc: cannot receive a %T", v)
}

// readFrame reads a header and checks the length of what follows.
func readFrame(from *mem.Reader) (*frame, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return nil, errors.New("a frame is shorter than its header")
	}
	f := &frame{
		kind: kind(header[0]),
		a:    binary.LittleEndian.Uint32(header[1:]),
		b:    binary.LittleEndian.Uint32(header[5:]),
		c:    binary.LittleEndian.Uint32(header[9:]),
		n:    binary.LittleEndian.Uint64(header[13:]),
	}
	most := 0
	switch f.kind {
	case headFrame:
		most = int(min(f.n, headBytes))
	case restFrame:
		most = frameBytes
	case abortFrame:
		most = textBytes
	}
	if got := from.Remaining(); got > most {
		return nil, fmt.Errorf("a frame of kind %d has %d bytes: want at most %d", f.kind, got, most)
	}
	return f, nil
}

func rest(from *mem.Reader) []byte {
	data := make([]byte, from.Remaining())
	io.ReadFull(from, data) // it lies in memory
	return data
}
