package field_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// packed are fields with every kind of packing.
var packed = []string{"2", "3", "5", "7", "31", "61", "127", "251", "257", "1021", "2^4", "2^5", "2^8", "2^9", "2^12", "2^15", "2^16", "65521", "65537", "2147483647", "koalabear", "goldilocks", "bls12-381", "bn254"}

func TestPackingOf(t *testing.T) {
	for _, c := range []struct {
		field       string
		bits        int
		align       int64
		bytes, want int64 // symbols that so many bytes need
	}{
		{"2", 1, 1, 10, 80},
		{"3", 1, 1, 10, 80},
		{"7", 2, 1, 10, 40},
		{"127", 6, 3, 10, 14},
		{"251", 7, 7, 10, 12},
		{"2^8", 8, 1, 10, 10},
		{"257", 8, 1, 10, 10},
		{"2^9", 9, 9, 10, 9},
		{"32771", 15, 15, 10, 6},
		{"2^16", 16, 2, 11, 6},
		{"16777259", 24, 3, 10, 4},
		{"2147483647", 24, 3, 10, 4},
		{"goldilocks", 56, 7, 10, 2},
		{"bls12-381", 248, 31, 32, 2},
		{"bn254", 248, 31, 31, 1},
		{"251", 7, 7, 7 << 50, 8 << 50},
	} {
		p := field.PackingOf(fieldtest.Parse(t, c.field))
		if p.Bits() != c.bits || p.Align() != c.align || p.Symbols(c.bytes) != c.want {
			t.Errorf("%s: bits %d, align %d, Symbols(%d) = %d; want %d, %d, %d",
				c.field, p.Bits(), p.Align(), c.bytes, p.Symbols(c.bytes), c.bits, c.align, c.want)
		}
		for n := range int64(50) {
			s := p.Symbols(n)
			if p.Bytes(s) < n || s > 0 && p.Bytes(s-1) >= n {
				t.Errorf("%s: %d bytes need %d symbols, but %d hold %d and %d hold %d", c.field, n, s, s-1, p.Bytes(s-1), s, p.Bytes(s))
			}
			if p.Symbols(p.Bytes(n)) > n || p.Symbols(p.Bytes(n)+1) <= n {
				t.Errorf("%s: %d symbols hold %d bytes, but these need %d and one more needs %d", c.field, n, p.Bytes(n), p.Symbols(p.Bytes(n)), p.Symbols(p.Bytes(n)+1))
			}
		}
	}
}

// bitwise is Pack one bit at a time.
func bitwise(f field.Field, data []byte) []byte {
	p := field.PackingOf(f)
	symbols := int(p.Symbols(int64(len(data))))
	dst := make([]byte, symbols*f.SymbolBytes())
	for k := range symbols {
		v := new(big.Int)
		for b := range p.Bits() {
			if i := k*p.Bits() + b; i < 8*len(data) && data[i/8]>>(i%8)&1 == 1 {
				v.SetBit(v, b, 1)
			}
		}
		e, _ := field.FromInt(v)
		field.PutSymbol(f, dst[k*f.SymbolBytes():], e)
	}
	return dst
}

// checkPacking checks Pack, Unpack, ReaderAt and WriterAt on data, whole and in pieces
// of so many symbols.
func checkPacking(t *testing.T, f field.Field, data []byte, step int) {
	t.Helper()
	p, n := field.PackingOf(f), f.SymbolBytes()
	want, back := bitwise(f, data), make([]byte, len(data))
	whole := make([]byte, len(want))
	p.Pack(whole, data)
	if !bytes.Equal(whole, want) || f.FirstInvalid(whole) != -1 {
		t.Fatalf("%s: % x packed is % x, want % x", f.Name(), data, whole, want)
	}
	if err := p.Unpack(back, whole); err != nil || !bytes.Equal(back, data) {
		t.Fatalf("%s: % x unpacked is % x, %v", f.Name(), data, back, err)
	}

	var written inOrder // from symbols with padding after them
	w := field.NewWriterAt(f, &written, int64(len(data)))
	padded := append(slices.Clone(whole), make([]byte, step*n)...)
	for lo := 0; lo < len(padded); lo += step * n {
		piece := padded[lo:min(lo+step*n, len(padded))]
		if k, err := w.WriteAt(piece, int64(lo)); k != len(piece) || err != nil {
			t.Fatalf("%s: WriteAt: %d, %v", f.Name(), k, err)
		}
	}
	if !bytes.Equal(written.Bytes(), data) {
		t.Fatalf("%s: %d bytes are written as %d others", f.Name(), len(data), written.Len())
	}

	// A longer file, to see that nothing beyond the size is read.
	r := field.NewReaderAt(f, bytes.NewReader(append(slices.Clone(data), 0xff, 0xff)), int64(len(data)))
	if r.Size() != int64(len(want)) {
		t.Fatalf("%s: %d bytes have size %d as symbols, want %d", f.Name(), len(data), r.Size(), len(want))
	}
	for lo := 0; lo <= len(want); lo += step * n {
		got := bytes.Repeat([]byte{0x77}, 3*step*n)
		k, err := r.ReadAt(got, int64(lo))
		exp := want[lo:min(lo+len(got), len(want))]
		if k != len(exp) || !bytes.Equal(got[:k], exp) || (err == io.EOF) != (k < len(got)) || err != nil && err != io.EOF {
			t.Fatalf("%s: ReadAt(%d bytes, %d) = %d, %v: % x, want % x", f.Name(), len(got), lo, k, err, got[:k], exp)
		}
	}
}

// inOrder is a writer that wants its bytes in order.
type inOrder struct{ bytes.Buffer }

func (b *inOrder) WriteAt(p []byte, offset int64) (int, error) {
	if offset != int64(b.Len()) {
		return 0, fmt.Errorf("written at %d after %d bytes", offset, b.Len())
	}
	return b.Write(p)
}

// TestPacking has packets of few symbols, and one of more than readers and writers hold at a time.
func TestPacking(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, name := range packed {
		f := fieldtest.Parse(t, name)
		for n := range 71 {
			steps := []int{1, 2, 5}
			if n == 70 {
				n, steps = 30_003, []int{1 + rng.IntN(20_000), 40_000}
			}
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			for _, step := range steps {
				checkPacking(t, f, data, step)
			}
		}
	}
}

func FuzzPacking(f *testing.F) {
	f.Add(byte(0), byte(1), []byte("volley"))
	f.Add(byte(7), byte(3), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(byte(18), byte(0), []byte{1})
	f.Fuzz(func(t *testing.T, which, step byte, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		checkPacking(t, fieldtest.Parse(t, packed[int(which)%len(packed)]), data, int(step)%32+1)
	})
}

func TestUnpackErrors(t *testing.T) {
	for _, c := range []struct {
		field  string
		symbol field.Element
		want   string
	}{
		{"2^4", field.Code(16), "field: symbol 1 is 16, more than the 4 bits of data it may hold"},
		{"251", field.Code(250), "field: symbol 1 is 250, more than the 7 bits of data it may hold"},
		{"65537", field.Code(65536), "field: symbol 1 is 65536, more than the 16 bits of data it may hold"},
		{"32771", field.Code(32770), "field: symbol 1 is 32770, more than the 15 bits of data it may hold"},
		{"goldilocks", field.Code(1 << 56), "field: symbol 1 is 72057594037927936, more than the 56 bits of data it may hold"},
		{"bls12-381", field.Element{3: 1 << 56}, "field: symbol 1 is 452312848583266388373324160190187140051835877600158453279131187530910662656, more than the 248 bits of data it may hold"},
	} {
		f := fieldtest.Parse(t, c.field)
		packet := make([]byte, 8*f.SymbolBytes())
		field.PutSymbol(f, packet[f.SymbolBytes():], c.symbol)
		p := field.PackingOf(f)
		err := p.Unpack(make([]byte, p.Bytes(8)), packet)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.field, err, c.want)
		}
	}
}

func TestPackingPanics(t *testing.T) {
	p := field.PackingOf(fieldtest.Parse(t, "257"))
	const few = ": 2 symbols for 3 bytes; want at least 3"
	wantPanic(t, "field: Pack"+few, func() { p.Pack(make([]byte, 4), make([]byte, 3)) })
	wantPanic(t, "field: Unpack"+few, func() { p.Unpack(make([]byte, 3), make([]byte, 4)) })
	wantPanic(t, "field: Pack: 5 bytes of symbols are no multiple of the 2 bytes of a symbol", func() { p.Pack(make([]byte, 5), nil) })
}

func TestReaderAtErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		field string
		r     io.ReaderAt
		size  int64
		n     int
		off   int64
		want  string
		is    error
		read  int
	}{
		{"257", bytes.NewReader(nil), 9, 4, -2, "field: negative offset -2", nil, 0},
		{"257", bytes.NewReader(nil), 9, 4, 3, "field: offset 3 is not on a symbol boundary; want a multiple of 2", nil, 0},
		{"257", bytes.NewReader(nil), 9, 3, 2, "field: 3 bytes are no whole symbols; want a multiple of 2", nil, 0},
		{"257", bytes.NewReader(make([]byte, 4)), 9, 18, 0, "field: 4 of 9 bytes at offset 0: unexpected EOF", io.ErrUnexpectedEOF, 8},
		{"257", bytes.NewReader(make([]byte, 4)), 9, 4, 14, "field: 0 of 2 bytes at offset 7: unexpected EOF", io.ErrUnexpectedEOF, 0},
		{"2^9", bytes.NewReader(make([]byte, 4)), 9, 14, 2, "field: 3 of 8 bytes at offset 1: unexpected EOF", io.ErrUnexpectedEOF, 4},
		{"2^9", failing{broken}, 9, 2, 2, "field: 1 of 2 bytes at offset 1: broken", broken, 0},
		{"2^9", bytes.NewReader(make([]byte, 1)), 9, 2, 2, "field: 0 of 2 bytes at offset 1: unexpected EOF", io.ErrUnexpectedEOF, 0},
		{"2^16", bytes.NewReader(make([]byte, 5)), 9, 10, 0, "field: 5 of 9 bytes at offset 0: unexpected EOF", io.ErrUnexpectedEOF, 4},
		{"2^8", failing{broken}, 9, 3, 6, "field: 1 of 3 bytes at offset 6: broken", broken, 1},
		{"251", failing{broken}, 9, 3, 6, "field: 1 of 3 bytes at offset 5: broken", broken, 0},
		{"2^8", bytes.NewReader(make([]byte, 9)), 9, 3, 9, "EOF", io.EOF, 0},
		{"2^8", bytes.NewReader(make([]byte, 9)), 9, 3, 8, "EOF", io.EOF, 1},
		{"2^8", bytes.NewReader(make([]byte, 9)), 9, 3, 1 << 62, "EOF", io.EOF, 0},
		{"251", bytes.NewReader(make([]byte, 9)), 9, 3, 1 << 62, "EOF", io.EOF, 0},
	} {
		r := field.NewReaderAt(fieldtest.Parse(t, c.field), c.r, c.size)
		n, err := r.ReadAt(make([]byte, c.n), c.off)
		if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) || n != c.read {
			t.Errorf("%s: ReadAt(%d bytes, %d) = %d, %v; want %d, %s", c.field, c.n, c.off, n, err, c.read, c.want)
		}
	}
	if n, err := field.NewReaderAt(fieldtest.Parse(t, "251"), failing{broken}, 0).ReadAt(nil, 0); n != 0 || err != nil {
		t.Errorf("reading nothing of nothing: %d, %v", n, err)
	}
}

// failing reads one byte and then fails, and writes none.
type failing struct{ err error }

func (r failing) ReadAt([]byte, int64) (int, error)  { return 1, r.err }
func (r failing) WriteAt([]byte, int64) (int, error) { return 0, r.err }

// TestWriterAtErrors writes zeros, then symbols that are refused, whose number is of all.
func TestWriterAtErrors(t *testing.T) {
	overfull := new(field.OverfullError)
	for _, c := range []struct {
		field   string
		zeros   int // bytes
		symbols []byte
		offset  int64
		want    string
	}{
		{"257", 0, make([]byte, 2), 2, "in order"},
		{"257", 0, make([]byte, 3), 0, "multiple of 2"},
		{"257", 0, []byte{255, 0, 0, 1}, 0, "symbol 1 is 256"},
		{"257", 100_000, []byte{1, 0, 0, 1}, 100_000, "symbol 50001 is"},
		{"2^9", 6, []byte{0, 0, 0, 2, 0, 0, 0, 0, 0, 0}, 6, "symbol 4 is"}, // eight fill whole bytes: three are kept, then five more come
	} {
		w := field.NewWriterAt(fieldtest.Parse(t, c.field), &inOrder{}, 1<<20)
		if _, err := w.WriteAt(make([]byte, c.zeros), 0); err != nil {
			t.Fatal(err)
		}
		_, err := w.WriteAt(c.symbols, c.offset)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &overfull) != strings.HasPrefix(c.want, "symbol") {
			t.Errorf("%s, %v at %d: %v, want an error with %q", c.field, c.symbols, c.offset, err, c.want)
		}
	}
	f := fieldtest.Parse(t, "257")
	if n, err := field.NewWriterAt(f, &inOrder{}, 1).WriteAt([]byte{1, 0, 0, 1}, 0); n != 4 || err != nil {
		t.Errorf("a symbol after the end: %d, %v", n, err)
	}
	if _, err := field.NewWriterAt(f, failing{io.ErrShortWrite}, 1).WriteAt([]byte{1, 0}, 0); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that fails: %v", err)
	}
}
