package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
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
	for bit := 15; bit >= 0; bit-- {
		result = product(result, result)
		if bit > 0 {
			result = product(result, a)
		}
	}
	return result
}

// ftiLevel3 returns what FTI_RSenc of FTI writes at each process of a group: all checkpoint files
// are lengthened by zeros to the longest, and the process of that rank sums them up by its
// row of the matrix, 1/(rank ^ (K+i)) for the one of rank i. A file of odd length ends
// within a symbol, whose other byte FTI takes to be zero and does not write; here it is
// written.
func ftiLevel3(files [][]byte) [][]byte {
	k, length := len(files), 0
	for _, file := range files {
		length = max(length, (len(file)+1)/2*2)
	}
	coded := make([][]byte, k)
	for rank := range coded {
		coded[rank] = make([]byte, length)
		for i, file := range files {
			c := inverse(uint32(rank ^ (k + i)))
			for at := 0; at < length; at += 2 {
				var symbol [2]byte
				if at < len(file) {
					copy(symbol[:], file[at:])
				}
				x := product(c, uint32(symbol[0])|uint32(symbol[1])<<8)
				coded[rank][at] ^= byte(x)
				coded[rank][at+1] ^= byte(x >> 8)
			}
		}
	}
	return coded
}

// TestFTI compares what encode makes by matrix fti, of a checkpoint file for each processor, with the encoded files of
// FTI's level 3, computed without anything of Volley's.
func TestFTI(t *testing.T) {
	t.Parallel()
	for a := uint32(1); a < 1<<16; a += 257 {
		if product(a, inverse(a)) != 1 {
			t.Fatalf("%#x times %#x is %#x", a, inverse(a), product(a, inverse(a)))
		}
	}
	for _, lengths := range [][]int{
		{200_001, 12_345, 1, 70_000}, {7, 3, 0, 6}, {7, 16, 5, 6}, {65_536, 65_535, 65_533, 65_529}, {131_073, 65_535, 65_533, 65_529},
		{300_000, 299_999, 10, 1_000}, {100_003, 70_001, 10, 1_000},
		// Of powers of two, matrix cauchy is the same: K+i is K xor i there.
		{9_001, 8_000, 7_003, 66_001, 5}, {1_001, 999, 0, 1, 1_000, 77},
	} {
		base, rng := t.TempDir(), rand.New(rand.NewPCG(uint64(lengths[0]), 1))
		files, args := make([][]byte, len(lengths)), []string{"encode", "-o", filepath.Join(base, "out"), "--matrix", "fti"}
		for rank, length := range lengths {
			for range length {
				files[rank] = append(files[rank], byte(rng.Uint32()))
			}
			name := filepath.Join(base, fmt.Sprintf("Ckpt1-Rank%d.fti", rank))
			if err := os.WriteFile(name, files[rank], 0o644); err != nil {
				t.Fatal(err)
			}
			args = append(args, name)
		}
		mustRun(t, args...)
		for rank, want := range ftiLevel3(files) {
			got, err := os.ReadFile(filepath.Join(base, "out", fmt.Sprintf("coded.%d", rank)))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v: coded file %d of %d bytes is not what FTI stores, %d bytes: %v", lengths, rank, len(got), len(want), err)
			}
		}
	}
}
