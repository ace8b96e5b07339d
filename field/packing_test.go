package field_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// packed are fields with every kind of packing.
var packed = []string{"2", "3", "5", "7", "31", "61", "127", "251", "257", "1021", "2^4", "2^5", "2^8", "2^9", "2^12", "2^15", "2^16", "3^4", "3^10", "65521", "65537", "2147483647", "koalabear", "goldilocks", "bls12-381", "bn254"}

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
		{"31", 4, 1, 10, 20},
		{"127", 6, 3, 10, 14},
		{"251", 7, 7, 10, 12},
		{"2^8", 8, 1, 10, 10},
		{"2^8:0x11b", 8, 1, 10, 10},
		{"257", 8, 1, 10, 10},
		{"2^9", 9, 9, 10, 9},
		{"2^12", 12, 3, 10, 7},
		{"3^10", 15, 15, 10, 6},
		{"2^16", 16, 2, 10, 5},
		{"2^16", 16, 2, 11, 6},
		{"65537", 16, 2, 11, 6},
		{"16777259", 24, 3, 10, 4},
		{"2147483647", 24, 3, 10, 4},
		{"babybear", 24, 3, 10, 4},
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

func TestPack(t *testing.T) {
	data := []byte{0b1011_0010, 0xff, 0x01}
	for _, c := range []struct {
		field string
		want  []byte
	}{
		{"2^4", []byte{0b0010, 0b1011, 0xf, 0xf, 0x1, 0x0}},
		{"7", []byte{0b10, 0b00, 0b11, 0b10, 3, 3, 3, 3, 1, 0, 0, 0}},
		{"251", []byte{0b0110010, 0b1111111, 0b0000111, 0}},
		{"2^8", []byte{0b1011_0010, 0xff, 0x01}},
		{"257", []byte{0b1011_0010, 0, 0xff, 0, 0x01, 0}},
		{"2^12", []byte{0b1011_0010, 0xf, 0x1f, 0}},
		{"2^16", []byte{0b1011_0010, 0xff, 0x01, 0}},
		{"65537", []byte{0b1011_0010, 0xff, 0, 0, 0x01, 0, 0, 0}},
		{"2147483647", []byte{0b1011_0010, 0xff, 0x01, 0}},
	} {
		f := fieldtest.Parse(t, c.field)
		p := field.PackingOf(f)
		for extra := range 3 {
			want := slices.Concat(c.want, make([]byte, extra*f.SymbolBytes()))
			got := bytes.Repeat([]byte{0x77}, len(want))
			p.Pack(got, data)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: Pack(% x) = % x, want % x", c.field, data, got, want)
			}
			back := make([]byte, len(data))
			if err := p.Unpack(back, got); err != nil || !bytes.Equal(back, data) {
				t.Errorf("%s: Unpack(% x) = % x, %v, want % x", c.field, got, back, err, data)
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

// checkPacking checks Pack, Unpack and ReaderAt on data, whole and in pieces
// that grow with the given step.
func checkPacking(t *testing.T, f field.Field, data []byte, step int) {
	t.Helper()
	p, n := field.PackingOf(f), f.SymbolBytes()
	want := bitwise(f, data)
	whole := make([]byte, len(want))
	p.Pack(whole, data)
	if !bytes.Equal(whole, want) {
		t.Fatalf("%s: % x packed is % x, want % x", f.Name(), data, whole, want)
	}
	if i := f.FirstInvalid(whole); i != -1 {
		t.Fatalf("%s: % x packed has no element at %d", f.Name(), data, i)
	}
	back := make([]byte, len(data))
	if err := p.Unpack(back, whole); err != nil || !bytes.Equal(back, data) {
		t.Fatalf("%s: % x unpacked is % x, %v", f.Name(), data, back, err)
	}

	pieces := make([]byte, len(want))
	clear(back)
	piece := step * int(p.Align())
	for lo := 0; lo < len(data); lo += piece {
		hi := min(lo+piece, len(data))
		from, to := int(p.Symbols(int64(lo)))*n, int(p.Symbols(int64(hi)))*n
		p.Pack(pieces[from:to], data[lo:hi])
		if err := p.Unpack(back[lo:hi], pieces[from:to]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pieces, want) || !bytes.Equal(back, data) {
		t.Fatalf("%s: % x in pieces of %d bytes is % x, want % x; unpacked % x", f.Name(), data, piece, pieces, want, back)
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

func TestPackingPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, name := range packed {
		f := fieldtest.Parse(t, name)
		for n := range 70 {
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			for _, step := range []int{1, 2, 5} {
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
		{"257", field.Code(256), "field: symbol 1 is 256, more than the 8 bits of data it may hold"},
		{"65537", field.Code(65536), "field: symbol 1 is 65536, more than the 16 bits of data it may hold"},
		{"3^10", field.Code(59048), "field: symbol 1 is 59048, more than the 15 bits of data it may hold"},
		{"goldilocks", field.Code(1 << 56), "field: symbol 1 is 72057594037927936, more than the 56 bits of data it may hold"},
		{"bls12-381", field.Element{3: 1 << 56}, "field: symbol 1 is 452312848583266388373324160190187140051835877600158453279131187530910662656, more than the 248 bits of data it may hold"},
		{"2147483647", field.Code(1 << 24), "field: symbol 1 is 16777216, more than the 24 bits of data it may hold"},
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
	for _, c := range []struct {
		want string
		call func()
	}{
		{"field: Pack: 2 symbols for 3 bytes; want at least 3", func() { p.Pack(make([]byte, 4), make([]byte, 3)) }},
		{"field: Unpack: 2 symbols for 3 bytes; want at least 3", func() { p.Unpack(make([]byte, 3), make([]byte, 4)) }},
		{"field: Pack: 5 bytes of symbols are no multiple of the 2 bytes of a symbol", func() { p.Pack(make([]byte, 5), nil) }},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("panic %v, want %s", got, c.want)
				}
			}()
			c.call()
		}()
	}
}

// TestReaderAtChunks reads more than the reader holds at a time.
func TestReaderAtChunks(t *testing.T) {
	data := make([]byte, 100_003)
	for i := range data[:len(data)-3] {
		binary.LittleEndian.PutUint32(data[i:], uint32(i)*2654435761)
	}
	for _, name := range packed {
		f := fieldtest.Parse(t, name)
		p, n := field.PackingOf(f), f.SymbolBytes()
		want := make([]byte, int(p.Symbols(int64(len(data))))*n)
		p.Pack(want, data)
		r := field.NewReaderAt(f, bytes.NewReader(data), int64(len(data)))
		got := make([]byte, len(want))
		if k, err := r.ReadAt(got, 0); k != len(got) || err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: reading all: %d bytes, %v", name, k, err)
		}
		for _, skip := range []int{1, 3, len(want) / n / 2} {
			got := make([]byte, len(want)-skip*n)
			if k, err := r.ReadAt(got, int64(skip*n)); k != len(got) || err != nil || !bytes.Equal(got, want[skip*n:]) {
				t.Fatalf("%s: reading from symbol %d: %d bytes, %v", name, skip, k, err)
			}
		}
	}
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

// failing reads one byte and then fails.
type failing struct{ err error }

func (r failing) ReadAt(b []byte, off int64) (int, error) { return 1, r.err }

func BenchmarkPacking(b *testing.B) {
	for _, name := range []string{"2^8", "257", "251", "2^12", "65521", "65537", "2147483647", "goldilocks", "bls12-381"} {
		f := fieldtest.Parse(b, name)
		p := field.PackingOf(f)
		data := make([]byte, 1<<20)
		packet := make([]byte, int(p.Symbols(1<<20))*f.SymbolBytes())
		b.Run("Pack/field="+name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				p.Pack(packet, data)
			}
		})
		b.Run("Unpack/field="+name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				if err := p.Unpack(data, packet); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
