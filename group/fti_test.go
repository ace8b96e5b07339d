package group_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"volley/group"
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
// written, and zeros up to length.
func ftiLevel3(files [][]byte, length int) [][]byte {
	k := len(files)
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

// TestFTI compares the parity of matrix fti, of nodes with a checkpoint file each, with the
// encoded files of FTI's level 3, computed without anything of Volley's. Each group is
// protected again with other lengths, when only some blocks are coded.
func TestFTI(t *testing.T) {
	t.Parallel()
	for a := uint32(1); a < 1<<16; a += 257 {
		if product(a, inverse(a)) != 1 {
			t.Fatalf("%#x times %#x is %#x", a, inverse(a), product(a, inverse(a)))
		}
	}
	for _, lengths := range [][2][]int{
		{{200_001, 12_345, 1, 70_000}, {200_001, 12_345, 2, 70_000}},
		{{7, 3, 0, 6}, {7, 16, 5, 6}},
		{{65_536, 65_535, 65_533, 65_529}, {131_073, 65_535, 65_533, 65_529}},
		{{300_000, 299_999, 10, 1_000}, {100_003, 70_001, 10, 1_000}},
		// Of powers of two, matrix cauchy is the same: K+i is K xor i there.
		{{9_001, 8_000, 7_003, 66_001, 5}, {9_001, 8_000, 7_003, 66_001, 7}},
		{{1_001, 999, 0, 1, 1_000, 77}, {1_001, 999, 1_003, 1, 1_000, 77}},
	} {
		base := t.TempDir()
		rng := rand.New(rand.NewPCG(uint64(lengths[0][0]), 1))
		var dirs []string
		files := make([][]byte, len(lengths[0]))
		for n := range files {
			dirs = append(dirs, filepath.Join(base, string(rune('a'+n))))
			must(t, os.Mkdir(dirs[n], 0o755))
		}
		for generation, of := range lengths {
			for n, length := range of {
				for len(files[n]) < length {
					files[n] = append(files[n], byte(rng.Uint32()))
				}
				files[n] = files[n][:length]
				must(t, os.WriteFile(filepath.Join(dirs[n], "Ckpt1-Rank0.fti"), files[n], 0o644))
			}
			r, err := protect(1, dirs, group.ProtectOptions{Tolerate: 2, Layout: group.Full, Matrix: group.FTI})
			must(t, err)
			if r.Field != "2^16" || r.Generation != int64(generation+1) {
				t.Errorf("%v: %+v", of, r)
			}
			longest := slices.Max(of)
			padded := (longest + 7) / 8 * 8
			for rank, want := range ftiLevel3(files, padded) {
				got, err := os.ReadFile(filepath.Join(dirs[rank], ".volley", fmt.Sprint("generation.", generation+1), "parity"))
				must(t, err)
				if len(got) != padded || !bytes.Equal(got[:longest], want[:longest]) {
					t.Errorf("%v: the first %d bytes of rank %d's parity, %d long, are not what FTI stores", of, longest, rank, len(got))
				}
				if !bytes.Equal(got[longest:], want[longest:]) {
					t.Errorf("%v: rank %d's parity goes on with %x: want %x", of, rank, got[longest:], want[longest:])
				}
			}
		}
	}
}
