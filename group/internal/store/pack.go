package store

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"sync"
)

// MostPacked is how many times shorter the text of a record may get.
const MostPacked = 32

// packers are what packPart takes, in this order. Each has a MiB, more than most records.
var packers = [2]sync.Pool{
	{New: func() any { return packer(gzip.BestSpeed) }},
	{New: func() any { return packer(gzip.HuffmanOnly) }},
}

func packer(level int) *gzip.Writer {
	z, _ := gzip.NewWriterLevel(nil, level)
	return z
}

// escapes are bytes that no line of a record has, and what stands for them: files without zeros have no holes.
var escapes = [][2][]byte{{[]byte("="), []byte("=}")}, {{0}, []byte("=@")}, {[]byte("\n"), []byte("=J")}}

// Pack compresses the text of a record: a line for each part, so that what changes is in few lines.
func Pack(text []byte) []byte {
	record := make([]byte, 0, len(text)/4)
	for {
		n := cut(text)
		line := packPart(text[:n])
		for _, e := range escapes {
			line = bytes.ReplaceAll(line, e[0], e[1])
		}
		record = append(append(record, line...), '\n')
		if text = text[n:]; len(text) == 0 {
			return record
		}
	}
}

// leastPart is the shortest part of a text but its last, in bytes. Most are two or three times as long.
const leastPart = 1 << 13

// cut returns where the first part of a text ends. The 64 bytes before say so: parts are the same wherever they lie.
func cut(text []byte) int {
	var h uint64
	for i, c := range text {
		h = h<<1 + uint64(c)*0x9e3779b97f4a7c15
		if i >= leastPart && h < 1<<63/leastPart {
			return i + 1
		}
	}
	return len(text)
}

// packPart compresses a text, unless it gets shorter than Unpack takes.
func packPart(text []byte) []byte {
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
	packed := bytes.ReplaceAll(record, []byte("\n"), nil)
	for _, e := range slices.Backward(escapes) {
		packed = bytes.ReplaceAll(packed, e[1], e[0])
	}
	z, err := gzip.NewReader(bytes.NewReader(packed)) // parts are read as one
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
