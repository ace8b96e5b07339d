package store

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"
)

// Digests of files, part by part, and of parity. Manifests and records always have SHA-256.
const (
	SHA256 = "sha256"
	BLAKE3 = "blake3"
	XXH3   = "xxh3" // 128 bits, against accidents: whoever can write a node can make up data that has a given one
)

var DigestBytes = map[string]int{SHA256: sha256.Size, BLAKE3: 32, XXH3: 16}

func (m *Manifest) AppendSum(sums, part []byte) []byte {
	switch m.Digest {
	case SHA256:
		sum := sha256.Sum256(part)
		return append(sums, sum[:]...)
	case BLAKE3:
		sum := blake3.Sum256(part)
		return append(sums, sum[:]...)
	case XXH3:
		sum := xxh3.Hash128(part).Bytes()
		return append(sums, sum[:]...)
	}
	panic(fmt.Sprintf("group: digest %q", m.Digest))
}

// Zeros returns a block of zeros, and its digest.
func (m *Manifest) Zeros() (block, sum []byte) {
	block = make([]byte, min(m.BlockBytes, m.ChunkBytes))
	return block, m.AppendSum(nil, block)
}

func (m *Manifest) DigestOf(list []byte, i int) []byte {
	n := DigestBytes[m.Digest]
	return list[i*n:][:n]
}

// ParityHoles returns, by chunk, the rows in which the parity of a node is a whole block of zeros.
func (m *Manifest) ParityHoles(x *Record) [][]int {
	_, zeros := m.Zeros()
	holes := make([][]int, m.ParityChunks)
	for row := range m.Rows() {
		for chunk := range m.ParityChunks {
			if bytes.Equal(m.DigestOf(x.Parity, m.Number(row, chunk, m.ParityChunks)), zeros) {
				holes[chunk] = append(holes[chunk], row)
			}
		}
	}
	return holes
}

// FilledParity returns how much room the parity of a node takes: blocks of zeros take none.
func (m *Manifest) FilledParity(x *Record) int64 {
	filled := m.ParityBytes()
	for _, rows := range m.ParityHoles(x) {
		filled -= int64(len(rows)) * min(m.BlockBytes, m.ChunkBytes)
	}
	return filled
}

func (m *Manifest) SameDigest(part, list []byte, i int) bool {
	return bytes.Equal(m.AppendSum(nil, part), m.DigestOf(list, i))
}
