package store

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"
)

// MostPacked is how many times shorter the text of a record may get.
const MostPacked = 32

// packers are what Pack takes, in this order. Each has a MiB, more than most records.
var packers = [2]sync.Pool{
	{New: func() any { return packer(gzip.BestSpeed) }},
	{New: func() any { return packer(gzip.HuffmanOnly) }},
}

func packer(level int) *gzip.Writer {
	z, _ := gzip.NewWriterLevel(nil, level)
	return z
}

// Pack compresses the text of a record, unless it gets shorter than unpack takes.
func Pack(text []byte) []byte {
	var b bytes.Buffer
	for i := range packers {
		b.Reset()
		z := packers[i].Get().(*gzip.Writer)
		z.Reset(&b)
		z.Write(text)
		z.Close()
		packers[i].Put(z)
		if len(text) <= MostPacked*b.Len() {
			break
		}
	}
	return b.Bytes()
}

// Unpack is the reverse of Pack, with bounded memory. The record of protected buffers is not compressed.
func Unpack(record []byte) (io.Reader, error) {
	text := bytes.NewReader(record)
	if bytes.HasPrefix(record, []byte("{")) {
		return text, nil
	}
	z, err := gzip.NewReader(text)
	return &unpacking{z, len(record), 0}, err
}

type unpacking struct {
	text         io.Reader
	packed, read int
}

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.text.Read(p)
	if u.read += n; u.read > MostPacked*u.packed {
		return 0, fmt.Errorf("%d bytes have a text of more than %d", u.packed, MostPacked*u.packed)
	}
	return n, err
}
