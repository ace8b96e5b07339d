package field_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// bytesAt is a writer that wants its bytes in order.
type bytesAt struct{ bytes.Buffer }

func (b *bytesAt) WriteAt(p []byte, offset int64) (int, error) {
	if offset != int64(b.Len()) {
		return 0, fmt.Errorf("written at %d after %d bytes", offset, b.Len())
	}
	return b.Write(p)
}

// TestWriterAt packs bytes, and takes the symbols apart again in pieces of any
// length, with padding after them.
func TestWriterAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range packed {
		f, err := field.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		p, width := field.PackingOf(f), f.SymbolBytes()
		for _, size := range []int{0, 1, 2, 3, 7, 100, 5000, 100_000} {
			for range 5 {
				data := make([]byte, size)
				for i := range data {
					data[i] = byte(rng.Uint32())
				}
				symbols := make([]byte, (int(p.Symbols(int64(size)))+rng.IntN(20))*width)
				p.Pack(symbols, data)
				var got bytesAt
				w := field.NewWriterAt(f, &got, int64(size))
				for off := 0; off < len(symbols); {
					n := min(rng.IntN(1+rng.IntN(60_000/width))*width, len(symbols)-off)
					if m, err := w.WriteAt(symbols[off:off+n], int64(off)); m != n || err != nil {
						t.Fatalf("%s: %d, %v", name, m, err)
					}
					off += n
				}
				if !bytes.Equal(got.Bytes(), data) {
					t.Fatalf("%s: %d bytes come back as %d others", name, size, got.Len())
				}
			}
		}
	}
}

func TestWriterAtErrors(t *testing.T) {
	f, err := field.Parse("257")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		symbols []byte
		off     int64
		want    string
	}{
		{make([]byte, 2), 2, "in order"},
		{make([]byte, 3), 0, "multiple of 2"},
		{[]byte{255, 0, 0, 1}, 0, "symbol 1 is 256"},
	} {
		if _, err := field.NewWriterAt(f, &bytesAt{}, 10).WriteAt(c.symbols, c.off); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v at %d: %v, want an error with %q", c.symbols, c.off, err, c.want)
		}
	}
	w := field.NewWriterAt(f, &bytesAt{}, 1<<20)
	overfull := new(field.OverfullError)
	if _, err := w.WriteAt(make([]byte, 100_000), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteAt([]byte{1, 0, 0, 1}, 100_000); !errors.As(err, &overfull) || overfull.Symbol != 50_001 {
		t.Errorf("%v, want an error of symbol 50001", err)
	}
	// Symbols of 9 bits fill whole bytes by eight: three are kept, then five more come.
	w = field.NewWriterAt(fieldtest.Parse(t, "2^9"), &bytesAt{}, 1<<20)
	if _, err := w.WriteAt(make([]byte, 6), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteAt([]byte{0, 0, 0, 2, 0, 0, 0, 0, 0, 0}, 6); !errors.As(err, &overfull) || overfull.Symbol != 4 {
		t.Errorf("%v, want an error of symbol 4", err)
	}
	if n, err := field.NewWriterAt(f, &bytesAt{}, 1).WriteAt([]byte{1, 0, 0, 1}, 0); n != 4 || err != nil {
		t.Errorf("a symbol after the end: %d, %v", n, err)
	}
	if _, err := field.NewWriterAt(f, full{}, 1).WriteAt([]byte{1, 0}, 0); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type full struct{}

func (full) WriteAt([]byte, int64) (int, error) { return 0, io.ErrShortWrite }
