package volley_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"volley"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/transport"
	"volley/transport/local"
)

// file is a packet with a name.
type file struct {
	io.ReaderAt
	name string
}

func (f file) Name() string { return f.name }

// discard is a packet nobody wants.
type discard struct{}

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// run runs one encoder at processors whose packets are the readers.
func run(t *testing.T, encoder *volley.Encoder, size int64, readers ...io.ReaderAt) []error {
	errs := make([]error, len(readers))
	local.Run(t.Context(), len(readers), func(ctx context.Context, tr transport.Transport) error {
		_, err := encoder.Run(ctx, tr, volley.Packet{Source: readers[tr.Rank()], Size: size, Coded: discard{}})
		errs[tr.Rank()] = err
		return err
	})
	return errs
}

// TestSymbolError puts a symbol outside the field into every segment.
func TestSymbolError(t *testing.T) {
	for _, c := range []struct {
		field   string
		symbol  []byte
		value   uint64
		symbols int
	}{
		{"257", []byte{1, 1}, 257, 500}, {"3^4", []byte{255}, 255, 500}, {"2^4", []byte{16}, 16, 500},
		{"65537", []byte{1, 0, 1, 0}, 65537, 500}, {"257", []byte{255, 255}, 65535, 1},
	} {
		f := fieldtest.Parse(t, c.field)
		encoder, err := volley.NewEncoder(t.Context(), matrixtest.Random(t, f, 3, 1), volley.WithMemory(4096))
		if err != nil {
			t.Fatal(err)
		}
		packets := randomPackets(f, c.symbols, c.symbols, c.symbols)
		size := len(packets[0])
		for at := 0; at < size; at += max(1, c.symbols/10) * f.SymbolBytes() {
			bad := bytes.Clone(packets[1])
			copy(bad[at:], c.symbol)
			errs := run(t, encoder, int64(size), bytes.NewReader(packets[0]), file{bytes.NewReader(bad), "one.dat"}, bytes.NewReader(packets[2]))
			var got *volley.SymbolError
			want := volley.SymbolError{Field: c.field, Name: "one.dat", Offset: int64(at), Value: field.Code(c.value)}
			if !errors.As(errs[1], &got) || *got != want {
				t.Errorf("got error %v, want %v", errs[1], &want)
			}
			text := fmt.Sprintf("one.dat: symbol %d at byte %d is outside the field %s", c.value, at, c.field)
			for k, err := range errs {
				if n := strings.Count(fmt.Sprint(err), text); n != 1 {
					t.Errorf("processor %d: the error %q says %q %d times", k, err, text, n)
				}
				if aborted := new(transport.AbortError); k != 1 && (!errors.As(err, &aborted) || aborted.Rank != 1) {
					t.Errorf("processor %d: got error %v, want that of rank 1", k, err)
				}
			}
		}
	}
	err := &volley.SymbolError{Field: "257", Offset: 4, Value: field.Code(300)}
	if got, want := err.Error(), "packet: symbol 300 at byte 4 is outside the field 257"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestShortPacket checks that a packet that ends before its size is an error, not
// padded.
func TestShortPacket(t *testing.T) {
	encoder, err := volley.NewEncoder(t.Context(), matrixtest.Random(t, fieldtest.Parse(t, "2^16"), 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 50, 99} {
		errs := run(t, encoder, 100, bytes.NewReader(make([]byte, 100)), bytes.NewReader(make([]byte, n)))
		if !errors.Is(errs[1], io.ErrUnexpectedEOF) || !strings.Contains(errs[1].Error(), fmt.Sprintf("%d of 100 bytes", n)) {
			t.Errorf("%d bytes: got error %v", n, errs[1])
		}
	}
}

// TestBadPackets checks lengths that make no sense.
func TestBadPackets(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	encoder, err := volley.NewEncoder(t.Context(), matrixtest.Random(t, f, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{-2, -1, 3} {
		errs := run(t, encoder, size, bytes.NewReader(nil), bytes.NewReader(nil))
		for _, err := range errs {
			if text := fmt.Sprintf("a packet of %d bytes", size); !volley.IsInputError(err) || !strings.Contains(fmt.Sprint(err), text) {
				t.Errorf("got error %v, want one that says %q", err, text)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) { // one of them only
		results := encode(t.Context(), alike(matrixtest.Random(t, f, 3, 1), [][]byte{{1, 2}, {1, 2, 3}, {}}))
		want := "volley: processor 1: a packet of 3 bytes: symbols of 2^16 have 2 bytes"
		if err := results[1].err; err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
		for _, k := range []int{0, 2} {
			if err := results[k].err; !errors.As(err, new(*transport.AbortError)) {
				t.Errorf("processor %d: got error %v", k, err)
			}
		}
	})
}

// TestWrongGroup runs a matrix at more or fewer processors than it is for.
func TestWrongGroup(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			members := alike(matrixtest.Random(t, f, 3, 1), make([][]byte, k))
			members[0].matrix = matrixtest.Random(t, f, k, 1) // and is right
			text := fmt.Sprintf("a matrix for 3 processors on a transport of %d ranks", k)
			for i, r := range encode(t.Context(), members) {
				if !strings.Contains(fmt.Sprint(r.err), text) {
					t.Errorf("processor %d: got error %v, want one that says %q", i, r.err, text)
				}
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	if _, err := volley.NewEncoder(t.Context(), matrix.NewDense(f, 2, 0)); err == nil || !strings.Contains(err.Error(), "2 rows and 0 columns") {
		t.Errorf("got error %v", err)
	}
	// Encode makes them known to the others.
	synctest.Test(t, func(t *testing.T) {
		members := alike(matrixtest.Random(t, f, 2, 1), make([][]byte, 2))
		members[1].matrix = matrix.NewDense(f, 2, 0)
		for k, r := range encode(t.Context(), members) {
			if !strings.Contains(fmt.Sprint(r.err), "2 rows and 0 columns") {
				t.Errorf("processor %d: got error %v", k, r.err)
			}
		}
	})
}
