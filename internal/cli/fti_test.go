package cli

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"volley/coded/manifest"
)

// product multiplies in GF(2^16), by shift and xor: the polynomial is x^16 + x^12 + x^3 + x + 1,
// that of Jerasure, which FTI codes with.
func product(a, b uint32) uint32 {
	var sum uint32
	for ; b != 0; b >>= 1 {
		if b&1 != 0 {
			sum ^= a
		}
		if a <<= 1; a>>16 != 0 {
			a ^= 0x1100b
		}
	}
	return sum
}

// inverse is a^(2^16-2).
func inverse(a uint32) uint32 {
	result := uint32(1)
	for range 15 {
		a = product(a, a)
		result = product(result, a)
	}
	return result
}

// ftiLevel3 returns what FTI_RSenc of FTI writes at the process of a rank: all checkpoint files
// are lengthened by zeros to the longest, and it sums them up by its
// row of the matrix, 1/(rank ^ (K+i)) for the one of rank i. A file of odd length ends
// within a symbol, whose other byte FTI takes to be zero and does not write; here it is
// written.
func ftiLevel3(files [][]byte, rank, length int) []byte {
	coded := make([]byte, length+length%2)
	for i, file := range files {
		c := inverse(uint32(rank ^ (len(files) + i)))
		for n := 0; n < len(coded); n += 2 {
			var symbol [2]byte
			copy(symbol[:], file[min(n, len(file)):])
			x := product(c, uint32(symbol[0])|uint32(symbol[1])<<8)
			coded[n] ^= byte(x)
			coded[n+1] ^= byte(x >> 8)
		}
	}
	return coded
}

// TestFTI compares what encode makes by matrix fti, of a checkpoint file for each processor, with the encoded files of
// FTI's level 3, computed without anything of Volley's. Of powers of two, matrix cauchy is the same: K+i is K xor i there.
func TestFTI(t *testing.T) {
	t.Parallel()
	for _, lengths := range [][]int{{20_001, 12_345, 1, 7_000}, {7, 3, 0, 6}, {7, 16, 5, 6}, {9_001, 8_000, 7_003, 66_001, 5}, {1_001, 999, 0, 1, 1_000, 77}} {
		in, files := writePackets(t, lengths...)
		out := filepath.Join(t.TempDir(), "out")
		mustRun(t, "encode", "-o", out, "--matrix", "fti", in)
		for rank := range files {
			want := ftiLevel3(files, rank, slices.Max(lengths))
			if got := readFile(t, out, manifest.CodedName(rank, len(files), 0)); !bytes.Equal(got, want) {
				t.Errorf("%v: coded file %d of %d bytes is not what FTI stores, %d bytes", lengths, rank, len(got), len(want))
			}
		}
	}
}
