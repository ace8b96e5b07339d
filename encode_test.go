package volley_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/transport"
	"volley/transport/local"
)

// TestEncode compares with the dense product, packets of unequal lengths
// included.
func TestEncode(t *testing.T) {
	for _, name := range []string{"2", "2^8", "2^16", "257", "3^4", "2147483647"} {
		f := fieldtest.Parse(t, name)
		for k := 1; k <= 9; k++ {
			a := matrixtest.Random(t, f, k, 5)
			lengths := make([]int, k)
			for i := range lengths {
				lengths[i] = 100 - i*i // 64 is a block
			}
			for _, lengths := range [][]int{lengths, make([]int, k)} {
				packets := randomPackets(f, lengths...)
				want := product(a, packets)
				for _, algorithm := range append(algo.Algorithms(), algo.Algorithm{Name: algo.Auto}) {
					if algorithm.Structured {
						continue
					}
					coded, report := mustEncode(t, alike(a, packets, volley.WithAlgorithm(algorithm.Name), volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau)))
					for j := range want {
						if !bytes.Equal(coded[j], want[j]) {
							t.Errorf("%s, K=%d, %s: processor %d: got %x, want %x", name, k, algorithm.Name, j, coded[j], want[j])
						}
					}
					if !report.Verified {
						t.Errorf("%s, K=%d, %s: not verified", name, k, algorithm.Name)
					}
				}
			}
		}
	}
}

// TestRunFiles encodes files of unequal lengths in many segments, twice with one
// encoder.
func TestRunFiles(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	a := matrixtest.Random(t, f, 5, 1)
	const memory = 5000
	encoder, err := volley.NewEncoder(t.Context(), a, volley.WithMemory(memory))
	if err != nil {
		t.Fatal(err)
	}
	for _, lengths := range [][]int{{4000, 3999, 0, 1, 64}, {7, 2, 3, 4, 5}} {
		dir := t.TempDir()
		packets := randomPackets(f, lengths...)
		in, out := make([]*os.File, 5), make([]*os.File, 5)
		for k, packet := range packets {
			name := filepath.Join(dir, fmt.Sprint(k))
			trailing := append(bytes.Clone(packet), "not of the packet"...)
			if err := os.WriteFile(name, trailing, 0o600); err != nil {
				t.Fatal(err)
			}
			if in[k], err = os.Open(name); err != nil {
				t.Fatal(err)
			}
			defer in[k].Close()
			if out[k], err = os.Create(name + ".coded"); err != nil {
				t.Fatal(err)
			}
			defer out[k].Close()
		}
		reports := make([]*volley.Report, 5)
		err = local.Run(t.Context(), 5, func(ctx context.Context, tr transport.Transport) (err error) {
			k := tr.Rank()
			reports[k], err = encoder.Run(ctx, tr, volley.Packet{Source: in[k], Size: int64(len(packets[k])), Coded: out[k]})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for j, want := range product(a, packets) {
			got, err := os.ReadFile(out[j].Name())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("processor %d: the coded file is wrong", j)
			}
		}
		r := volley.Merge(reports)
		if longest := int64(2 * lengths[0]); r.PacketBytes != longest || r.SymbolsPerPacket != longest/2 {
			t.Errorf("report of packets of %d bytes, %d symbols: want those of the longest, %d bytes", r.PacketBytes, r.SymbolsPerPacket, longest)
		}
		if many := lengths[0] > 1000; (r.Segments > 5) != many || !r.Verified {
			t.Errorf("%d segments, verified %v", r.Segments, r.Verified)
		}
	}
}

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

// TestEstimate checks that a run does what Estimate says.
func TestEstimate(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	a := matrixtest.Random(t, f, 7, 1)
	encoder, err := volley.NewEncoder(t.Context(), a, volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau))
	if err != nil {
		t.Fatal(err)
	}
	estimate, err := encoder.Estimate(t.Context(), nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	_, report := mustEncode(t, alike(a, randomPackets(f, 100, 100, 100, 100, 100, 100, 100), volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau)))
	if report.Algorithm != estimate.Algorithm || report.Parameters != estimate.Parameters ||
		report.C1 != estimate.C1 || report.C2 != estimate.C2 || report.C3 != estimate.C3 {
		t.Errorf("got %+v, estimated %+v", report, estimate)
	}
}
