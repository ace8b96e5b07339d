package twosums

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/klauspost/cpuid/v2"
)

// k are the constants of the rounds, and h those with which a state begins (FIPS 180-4).
var k = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

var h = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// lanes is where a word of a state lies in a register, as the instructions have it.
var lanes = [8]int{3, 2, 7, 6, 1, 0, 5, 4}

// blocks adds n blocks of 64 bytes from p and q to two states. n is 1 or more.
//
//go:noescape
func blocks(states *[2][8]uint32, k *[64]uint32, p, q *byte, n int)

var supported = cpuid.CPU.Supports(cpuid.SHA, cpuid.SSSE3)

// sumBoth does what SHA256 does, for messages of one length of a block or more, and reports whether it can.
func sumBoth(x, y, a, b []byte) bool {
	if !supported {
		return false
	}
	var states [2][8]uint32
	for i, lane := range lanes {
		states[0][lane], states[1][lane] = h[i], h[i]
	}
	full := len(a) / sha256.BlockSize
	blocks(&states, &k, &a[0], &b[0], full)
	var ends [2][2 * sha256.BlockSize]byte
	rest := copy(ends[0][:], a[full*sha256.BlockSize:])
	copy(ends[1][:], b[full*sha256.BlockSize:])
	n := (rest+8)/sha256.BlockSize + 1
	for i := range ends {
		ends[i][rest] = 0x80
		binary.BigEndian.PutUint64(ends[i][n*sha256.BlockSize-8:], 8*uint64(len(a)))
	}
	blocks(&states, &k, &ends[0][0], &ends[1][0], n)
	for i, digest := range [2][]byte{x, y} {
		for word, lane := range lanes {
			binary.BigEndian.PutUint32(digest[4*word:], states[i][lane])
		}
	}
	return true
}
